"""The page of `attack_table.py`: what all runs in a folder came to, as JSON and as Markdown."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from edp_mx.config import load_config
from edp_mx.reports.summary import format_epsilon
from edp_mx.reports.table import render_table
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import read_json

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
# Table 1, CLC: MIA-AUC of SGD, then its relative change by mechanism, all in %.
PAPER = {
    "atis": (67.5, -8.26, -11.6, -11.3),
    "snips": (70.6, -2.5, 1.8, 4.4),
    "nlu_eval": (65.3, -1.4, -7.6, -4.6),
}
INTRODUCTION = """\
# Membership inference against CLC

Made by `{command}`. One run a row, seed 0, {workers} worker{s}{changes}.

AUC in % with its interval (95 %, bootstrap over utterances; what another training run would give
is not in it). Members are the training part, as many non-members come from the test part, each text
once. *Paper* is the AUC of its Table 1, CLC (its changes are relative to SGD). The *paper's attack*
learns on an SGD run on another corpus. *Words alone* looks at no output: it says "member" where the
vocabulary, which was read off the training part, has all words. What an attack on the outputs has
beyond it is what the weights leak.
"""
LIRA = """\
LiRA has {shadows} shadow models a corpus, trained on random halves as the *SGD* target was, with
{epochs} epochs: its attacker does not know of the noise. Their words are their own half's.
"""
EXPOSURE = """\
## Exposure of canaries

A model trained anew by the run's settings, with {count} phone numbers of {digits} digits each
in the training part 1, 10 and 100 times; the same in all runs of a corpus. Exposure in bits, mean
± its standard error over canaries (not over trainings), by the fitted distribution as in Li et al.
2022, Table 9 (by rank among {candidates} other numbers: at most {most:.1f}); chance is 1.44, all of
the number is {all:.1f}.
"""


def values_of(folder: Path) -> Dict[str, Any]:
    """All that the runs in a folder came to, by name."""
    values: Dict[str, Any] = {}
    for corpus in CORPORA:
        for mechanism in MECHANISMS:
            run = RunDirectory(folder / f"{corpus}_clc_{mechanism}")
            if run.has("results"):
                values[run.path.name] = _values(run, corpus, mechanism)
    return values


def _values(run: RunDirectory, corpus: str, mechanism: str) -> Dict[str, Any]:
    config, privacy = load_config(run.config), run.read("privacy")
    attacks: Dict[str, Any] = {}
    facts: Dict[str, Any] = {}
    for name in ("threshold", "shadow", "lira"):
        path = run.path / f"attack-{name}" / "attack.json"
        if path.exists():
            attack = read_json(path)
            attacks.update({result["name"]: result for result in attack["results"]})
            facts[name] = attack["facts"]
    exposure = run.path / "attack-canaries" / "exposure.json"
    return {
        "corpus": corpus,
        "mechanism": mechanism,
        "epochs": config.training.epochs,
        "size": config.data.size,
        "workers": run.read("environment")["num_workers"],
        "ser": run.read("results")["test"]["ser"],
        "as_published": privacy["as_published"],
        "holds_if": privacy["holds_if"],
        "paper": paper_auc(corpus, mechanism),
        "attacks": attacks,
        "facts": facts,
        "exposure": read_json(exposure) if exposure.exists() else None,
    }


def paper_auc(corpus: str, mechanism: str) -> float:
    """The paper's AUC in %."""
    sgd, *changes = PAPER[corpus]
    place = MECHANISMS.index(mechanism)
    return sgd * (1 + changes[place - 1] / 100) if place else sgd


def page_of(values: Dict[str, Any], command: str) -> str:
    """The whole page."""
    if not values:
        return f"# Membership inference against CLC\n\nMade by `{command}`: nothing yet.\n"
    rows = list(values.values())
    some = rows[0]
    changes = f", {some['size']} utterances a corpus" if some["size"] else ""
    parts = [
        INTRODUCTION.format(
            command=command,
            workers=some["workers"],
            s="" if some["workers"] == 1 else "s",
            changes=changes,
        ),
        _auc_table(rows),
        _conditions(rows),
    ]
    lira = [row["facts"]["lira"] for row in rows if "lira" in row["facts"]]
    if lira:
        epochs = dict.fromkeys(str(facts["shadows' epochs"]) for facts in lira)
        parts.append(LIRA.format(shadows=lira[0]["shadows"], epochs=" or ".join(epochs)))
    parts += ["## TPR in % at a small FPR\n\nAt FPR 1 %, then at 0.1 %.\n", _tpr_table(rows)]
    exposed = [row for row in rows if row["exposure"]]
    if exposed:
        parts.append(_exposure(exposed))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _conditions(rows: List[Dict[str, Any]]) -> str:
    """Under which conditions the ε of the table hold."""
    found = dict.fromkeys(c for row in rows for c in row["holds_if"].get("conditions", []))
    return "\n".join(["ε holds if:", *(f"- {each}" for each in found)] if found else [])


def _auc_table(rows: List[Dict[str, Any]]) -> str:
    header = ["run", "SER %", "paper", *ATTACKS.values(), "ε as published", "ε that holds, if"]
    return render_table(
        header,
        [
            [
                f"{row['corpus']}_clc_{row['mechanism']}",
                f"{100 * row['ser']:.2f}",
                f"{row['paper']:.1f}",
                *(_estimate(row, name, "auc") for name in ATTACKS),
                format_epsilon(row["as_published"]),
                format_epsilon(row["holds_if"]),
            ]
            for row in rows
        ],
    )


def _tpr_table(rows: List[Dict[str, Any]]) -> str:
    """Of the runs that were attacked."""
    names = [name for name in ATTACKS if name != "words alone"]  # it has ties only

    def cell(row: Dict[str, Any], name: str) -> str:
        found = (_estimate(row, name, "tpr_at_fpr", fpr) for fpr in ("0.01", "0.001"))
        return "; ".join(filter(None, found))

    return render_table(
        ["run", *(ATTACKS[name] for name in names)],
        [
            [f"{row['corpus']}_clc_{row['mechanism']}", *(cell(row, name) for name in names)]
            for row in rows
            if row["attacks"]
        ],
    )


def _estimate(row: Dict[str, Any], name: str, key: str, fpr: Optional[str] = None) -> str:
    """A number with its interval; nothing where the attack was not run."""
    result = row["attacks"].get(name)
    if result is None:
        return ""
    one = result[key] if fpr is None else result[key][fpr]
    return f"{100 * one['value']:.1f} ({100 * one['low']:.1f}–{100 * one['high']:.1f})"


def _exposure(rows: List[Dict[str, Any]]) -> str:
    """The table of exposures, by fit, and by rank in brackets."""
    settings = rows[0]["exposure"]["settings"]
    text = EXPOSURE.format(
        count=settings["count"],
        digits=settings["digits"],
        candidates=settings["candidates"],
        most=math.log2(settings["candidates"] + 1),
        all=math.log2(10 ** settings["digits"]),
    )
    table = []
    for row in rows:
        cells = []
        for repeats in settings["repeats"]:
            group = [c for c in row["exposure"]["canaries"] if c["repeats"] == repeats]
            by_fit, by_rank = (_mean_of([c[key] for c in group]) for key in ("by_fit", "by_rank"))
            cells.append(f"{by_fit} ({by_rank})")
        table.append([f"{row['corpus']}_clc_{row['mechanism']}", *cells])
    header = ["run", *(f"r = {repeats}" for repeats in settings["repeats"])]
    return f"{text}\n{render_table(header, table)}"


def _mean_of(values: List[Optional[float]]) -> str:
    """Mean ± standard error of what could be fitted."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return "not to be fitted"
    return f"{np.mean(known):.1f} ± {np.std(known, ddof=1) / math.sqrt(len(known)):.1f}"
