"""Membership inference against CLC on public corpora, by corpus and mechanism, and exposure.

Run: .venv/bin/python benchmarks/attack_table.py --lira 16 --out results/attacks.md
     … --only atis --lira 0 --canaries --set model.hidden_size=128       a first, smaller table

LiRA's shadow models are trained once per corpus and serve its four targets. Whatever is in --runs
is not done again.
"""

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping

import numpy as np
from measuring import ROOT

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.config import dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.reports.paper import TABLE_1
from edp_mx.reports.summary import format_epsilon
from edp_mx.reports.table import render_table
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text
from edp_mx.runtime.json_text import read_json

CORPORA = ("atis", "snips", "nlu_eval")
MECHANISMS = ("sgd", "edp_none", "edp_linear", "edp_exponential")
ATTACKS = {
    "shadow classifier": "paper's attack",
    "loss": "loss",
    "loss calibrated by intent": "loss by intent",
    "LiRA online": "LiRA online",
    "LiRA offline": "LiRA offline",
    "words alone": "words alone",
}
PAGE = """\
# Membership inference against CLC

Made by `{command}`. One run per row, seed 0, 1 worker.

AUC in % with its interval (95 %, bootstrap over utterances; it does not cover what another training
run would give). Members are the training part, as many non-members come from the test part, each
text once. *Paper* is the AUC of its Table 1, CLC (its changes are relative to SGD). The *paper's
attack* learns on an SGD run on another corpus. LiRA's shadow models train as the SGD target does,
on random halves, without noise. *Words alone* looks at no output: it says "member" where the
vocabulary, which was read off the training part, has all words. What an attack on the outputs has
beyond it is what the weights leak.

{auc}

ε holds if:
{conditions}

## TPR in % at a small FPR

At FPR 1 %, then at 0.1 %.

{tpr}

## Exposure of canaries

A model trained anew with the run's settings and with phone numbers in the training part r times
each, the same in all runs of a corpus. Exposure in bits, mean ± its standard error over canaries
(not over trainings), by the fitted distribution as in Li et al. 2022, Table 9 (by rank in
brackets); chance is 1.44.

{exposure}
"""

Found = Dict[str, Dict[str, Any]]  # each attack's results, by the attack's name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--runs", type=Path, default=Path("runs/attacks"), help="the folder of all runs")
    add("--out", type=Path, default=Path("results/attacks.md"), help="the page")
    add("--only", nargs="*", default=CORPORA, choices=CORPORA, metavar="CORPUS",
        help="none: only write the page of what is there (default: all)")  # fmt: skip
    add("--lira", type=int, default=16, metavar="K", help="shadow models per corpus; 0: no LiRA")
    add("--canaries", nargs="*", default=["sgd", "edp_none", "edp_exponential"], choices=MECHANISMS,
        metavar="MECHANISM", help="measure the exposure after these")  # fmt: skip
    add("--set", dest="settings", nargs="+", default=[], metavar="KEY=VALUE", help="of every model")
    options = parser.parse_args()
    try:
        for corpus in options.only:
            do_corpus(corpus, options)
        write_text(options.out, page_of(options.runs))
    except UserError as error:
        sys.exit(str(error))


def do_corpus(corpus: str, options: argparse.Namespace) -> None:
    """Train and attack the targets of one corpus, quick results first."""
    targets = {name: _train(corpus, name, options) for name in MECHANISMS}
    shadow = _train(OTHER_CORPUS[corpus], "sgd", options)
    for target in targets.values():
        _attack(target, "shadow", "--shadow", str(shadow.path))
    for mechanism in options.canaries:
        _attack(targets[mechanism], "canaries", "--canaries", "--canary-count", "10")
    if options.lira:
        _attack(targets["sgd"], "lira", "--lira", str(options.lira))
        for mechanism in MECHANISMS[1:]:
            _attack(targets[mechanism], "lira", "--shadows-of", str(targets["sgd"].path))


def _train(corpus: str, mechanism: str, options: argparse.Namespace) -> RunDirectory:
    """Return a finished run, trained now if it is not there, or resumed if it was interrupted."""
    run = RunDirectory(options.runs / f"{corpus}_clc_{mechanism}")
    configs = ROOT / "configs"
    files = [configs / f"{corpus}_clc.yaml", configs / "mechanism" / f"{mechanism}.yaml"]
    if not run.config.exists():
        settings = ["--set", *options.settings] if options.settings else []
        _command(run, "train", *map(str, files), "--run", str(run.path), *settings)
    elif dump_config(load_config(run.config)) != dump_config(load_config(files, options.settings)):
        raise UserError(f"{run.path} holds a run with other settings: choose another --runs")
    elif not run.has("results"):
        _command(run, "train", "--resume", str(run.path))
    return run


def _attack(run: RunDirectory, name: str, *arguments: str) -> None:
    """Attack a run, unless it was attacked so before."""
    result = "exposure.json" if name == "canaries" else "attack.json"
    if not (run.path / f"attack-{name}" / result).exists():
        _command(run, "attack", str(run.path), *arguments)


def _command(run: RunDirectory, *arguments: str) -> None:
    """Run the program; what it prints goes to a file beside the run."""
    print("edp-mx", *arguments, flush=True)
    log = run.path.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "edp_mx", *arguments]
    with open(log, "ab") as file:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        code = subprocess.run(command, stdout=file, stderr=file, env=environment).returncode
    if code:
        raise UserError(f"`edp-mx {arguments[0]}` ended with code {code}: see {log}")


def page_of(folder: Path) -> str:
    """Render the page of all finished runs in a folder."""
    paths = [folder / f"{corpus}_clc_{name}" for corpus in CORPORA for name in MECHANISMS]
    runs = [RunDirectory(path) for path in paths if RunDirectory(path).has("results")]
    kinds = ("threshold", "shadow", "lira")
    attacks: Dict[str, Found] = {run.path.name: {} for run in runs}
    for run in runs:
        for path in (run.path / f"attack-{kind}" / "attack.json" for kind in kinds):
            results = read_json(path)["results"] if path.exists() else []
            attacks[run.path.name].update({result["name"]: result for result in results})
    bounds = [run.read("privacy")["holds_if"] for run in runs]
    conditions = dict.fromkeys(f"- {c}" for bound in bounds for c in bound.get("conditions", []))
    return PAGE.format(
        command=" ".join(["benchmarks/attack_table.py", *sys.argv[1:]]),
        auc=_auc_table(runs, attacks),
        conditions="\n".join(conditions),
        tpr=_tpr_table(attacks),
        exposure=_exposure_table(runs),
    )


def _auc_table(runs: List[RunDirectory], attacks: Mapping[str, Found]) -> str:
    rows = []
    for run in runs:
        name, privacy = run.path.name, run.read("privacy")
        found = attacks[name]
        aucs = (_estimate(found[attack]["auc"]) if attack in found else "" for attack in ATTACKS)
        scores = f"{100 * run.read('results')['test']['ser']:.2f}"
        corpus, mechanism = name.split("_clc_")
        paper = TABLE_1["clc"][corpus]
        changes = {f"edp_{decay}": change.auc for decay, change in paper.changes.items()}
        expected = f"{paper.auc * (1 + changes.get(mechanism, 0) / 100):.1f}"
        epsilons = (format_epsilon(privacy[key]) for key in ("as_published", "holds_if"))
        rows.append([name, scores, expected, *aucs, *epsilons])
    columns = ("run", "SER %", "paper", *ATTACKS.values(), "ε as published", "ε that holds, if")
    return render_table(columns, rows)


def _tpr_table(attacks: Mapping[str, Found]) -> str:
    names = [name for name in ATTACKS if name != "words alone"]  # it has ties only
    rows = []
    for run, found in attacks.items():
        rates = [found[name]["tpr_at_fpr"] if name in found else {} for name in names]
        rows.append([run, *("; ".join(map(_estimate, rate.values())) for rate in rates)])
    return render_table(("run", *(ATTACKS[name] for name in names)), rows)


def _estimate(one: Mapping[str, float]) -> str:
    """A number in % with its interval."""
    return f"{100 * one['value']:.1f} ({100 * one['low']:.1f}–{100 * one['high']:.1f})"


def _exposure_table(runs: List[RunDirectory]) -> str:
    rows, repeats = [], []
    for run in runs:
        path = run.path / "attack-canaries" / "exposure.json"
        if path.exists():
            canaries = read_json(path)["canaries"]
            repeats = sorted({canary["repeats"] for canary in canaries})
            groups = [[c for c in canaries if c["repeats"] == r] for r in repeats]
            cells = (f"{_mean(group, 'by_fit')} ({_mean(group, 'by_rank')})" for group in groups)
            rows.append([run.path.name, *cells])
    return render_table(("run", *(f"r = {r}" for r in repeats)), rows) if rows else "Not measured."


def _mean(canaries: List[Dict[str, Any]], key: str) -> str:
    """Return the mean ± standard error of what could be fitted."""
    known = [canary[key] for canary in canaries if canary[key] is not None]
    if len(known) < 2:
        return "not to be fitted"
    return f"{np.mean(known):.1f} ± {np.std(known, ddof=1) / math.sqrt(len(known)):.1f}"


if __name__ == "__main__":
    main()
