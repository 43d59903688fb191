"""Membership inference against CLC on public corpora, by corpus and mechanism, and exposure.

Run: .venv/bin/python benchmarks/attack_table.py --runs runs/attacks --out results/attacks.md
     … --only atis --epochs 5 --set model.hidden_size=128     a first, smaller table
     … --only atis --lira 0 --canaries                        without LiRA, without canaries
     … --is-page-only                                         from what is there

For each corpus and mechanism a target is trained (`launch/train.sh` with one worker), and attacked
by thresholds, by the paper's attack (its shadow is another corpus' SGD run) and by LiRA. The
shadow models of LiRA are trained once a corpus, as the SGD target is, and serve its four targets.
What is in --runs is not done again: a table that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import List

from attack_table_page import CORPORA, MECHANISMS, page_of, values_of

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.config import dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_json, write_text

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Does what is missing, and writes the page after each step."""
    options = _parser().parse_args()
    try:
        if not options.is_page_only:
            for corpus in options.only:
                _do_corpus(corpus, options)
        _write(options)
    except UserError as error:
        sys.exit(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--runs", type=Path, default=Path("runs/attacks"), help="where all runs go")
    add("--out", type=Path, default=Path("results/attacks.md"), help="the page; .json beside it")
    add("--only", nargs="+", default=list(CORPORA), choices=CORPORA, metavar="CORPUS")
    add("--lira", type=int, default=16, metavar="K", help="shadow models a corpus; 0: no LiRA (16)")
    add("--jobs", type=int, default=1, metavar="n", help="shadow models at once (1)")
    add("--workers", type=int, default=1, metavar="N", help="of each target (1)")
    add("--size", type=int, metavar="n", help="utterances of each corpus, at random (all)")
    add("--epochs", type=int, metavar="n", help="of every model (as configured)")
    add(
        "--set", dest="overrides", nargs="+", default=[], metavar="KEY=VALUE", help="of every model"
    )
    add("--canaries", nargs="*", default=["sgd", "edp_none", "edp_exponential"], choices=MECHANISMS,
        metavar="MECHANISM", help="whose exposure is measured")  # fmt: skip
    add("--canary-count", type=int, default=10, metavar="n", help="canaries a repeat (10)")
    add("--is-page-only", action="store_true", help="do nothing, write what is there")
    return parser


def _do_corpus(corpus: str, options: argparse.Namespace) -> None:
    """Trains and attacks the targets of one corpus; quick results first."""
    first = _train(corpus, "sgd", options)
    shadow = _train(OTHER_CORPUS[corpus], "sgd", options)
    _attack(first, ["--shadow", str(shadow.path)], "shadow", options)
    for mechanism in MECHANISMS[1:]:
        target = _train(corpus, mechanism, options)
        _attack(target, ["--shadow", str(shadow.path)], "shadow", options)
    for mechanism in options.canaries:
        count = ["--canary-count", str(options.canary_count)]
        _attack(_run(corpus, mechanism, options), ["--canaries", *count], "canaries", options)
    if options.lira:
        lira = ["--lira", str(options.lira), "--jobs", str(options.jobs)]
        _attack(first, lira, "lira", options)
        for mechanism in MECHANISMS[1:]:
            borrowed = ["--shadows-of", str(first.path)]
            _attack(_run(corpus, mechanism, options), borrowed, "lira", options)


def _run(corpus: str, mechanism: str, options: argparse.Namespace) -> RunDirectory:
    return RunDirectory(options.runs / f"{corpus}_clc_{mechanism}")


def _train(corpus: str, mechanism: str, options: argparse.Namespace) -> RunDirectory:
    """A finished run, trained now if it is not there, or taken up where it was interrupted.

    Raises:
        UserError: it is there with other settings.
    """
    run = _run(corpus, mechanism, options)
    configs = ROOT / "configs"
    files = [configs / f"{corpus}_clc.yaml", configs / "mechanism" / f"{mechanism}.yaml"]
    settings = [*options.overrides]
    settings += [f"data.size={options.size}"] if options.size else []
    settings += [f"training.epochs={options.epochs}"] if options.epochs else []
    if not run.config.exists():
        start = [
            *map(str, files),
            "--run",
            str(run.path),
            *(["--set", *settings] if settings else []),
        ]
    elif dump_config(load_config(run.config)) != dump_config(load_config(files, settings)):
        raise UserError(f"{run.path} holds a run of other settings: name another --runs")
    elif run.has("results"):
        return run
    else:
        start = ["--resume", str(run.path)]
    _command(["train", *start], run, num_workers=options.workers)
    _write(options)
    return run


def _attack(
    run: RunDirectory, arguments: List[str], name: str, options: argparse.Namespace
) -> None:
    """Attacks a run, unless it was attacked so before."""
    result = "exposure.json" if name == "canaries" else "attack.json"
    if not (run.path / f"attack-{name}" / result).exists():
        _command(["attack", str(run.path), *arguments], run, num_workers=1)
        _write(options)


def _command(arguments: List[str], run: RunDirectory, *, num_workers: int) -> None:
    """Runs the program; what it says goes to a file beside the run.

    Raises:
        UserError: it failed.
    """
    command = [sys.executable, "-m", "edp_mx", *arguments]
    if num_workers > 1:
        horovodrun = str(Path(sys.executable).with_name("horovodrun"))
        command = [horovodrun, "-np", str(num_workers), "--gloo", *command]
    print("edp-mx", *arguments, flush=True)
    log = run.path.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    with open(log, "ab") as file:
        code = subprocess.run(command, stdout=file, stderr=file, env=environment).returncode
    if code:
        last = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
        raise UserError(f"it ended with code {code}: {''.join(last)} (see {log})")


def _write(options: argparse.Namespace) -> None:
    """The page and its numbers, from what is there."""
    values = values_of(options.runs)
    write_json(options.out.with_suffix(".json"), values)
    write_text(options.out, page_of(values, _say(options)))


def _say(options: argparse.Namespace) -> str:
    """The command that does all of it again."""
    changed = [f"--only {' '.join(options.only)}"] if options.only != list(CORPORA) else []
    changed += [f"--size {options.size}"] if options.size else []
    changed += [f"--epochs {options.epochs}"] if options.epochs else []
    changed += [f"--lira {options.lira}", *([] if options.canaries else ["--canaries"])]
    changed += [f"--workers {options.workers}"] if options.workers > 1 else []
    changed += [f"--set {' '.join(options.overrides)}"] if options.overrides else []
    return " ".join(["benchmarks/attack_table.py", *changed])


if __name__ == "__main__":
    main()
