"""What ε buys: the success of the attacks on several runs against the runs' ε."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.attacks.directory import read_attack
from edp_mx.attacks.membership.roc import FPRS
from edp_mx.attacks.membership.scores import Origin
from edp_mx.errors import UserError
from edp_mx.reports.attack_pictures import COLOURS, save, write_csv
from edp_mx.reports.summary import footnotes, format_epsilon, format_holding_epsilon
from edp_mx.reports.table import render_table
from edp_mx.runs.run_directory import RunDirectory

ATTACKS = ("shadow", "threshold", "lira")
HEADLINES = ("shadow classifier", "loss", "LiRA online", "LiRA offline")
MARKERS = ("o", "s", "^", "v")


class Point(NamedTuple):
    """One attack on one run.

    Attributes:
        auc, tpr: value, low and high; of the TPR at an FPR of 1 %.
        judges: how its members were drawn, in words.
        privacy: the run's `privacy.json`.
    """

    run: str
    attack: str
    auc: Dict[str, float]
    tpr: Dict[str, float]
    judges: str
    privacy: Dict[str, Any]

    @property
    def as_published(self) -> Optional[float]:
        """log₁₀ of the published ε; None where it is infinite."""
        return self.privacy["as_published"]["log10_epsilon"]

    @property
    def holds_if(self) -> Optional[float]:
        """log₁₀ of the ε that holds on its conditions; None where it is infinite."""
        return self.privacy["holds_if"]["log10_epsilon"]


def points_of(runs: Sequence[RunDirectory]) -> List[Point]:
    """The headline results of each run's attacks, in the order of the runs.

    Raises:
        UserError: a run was never attacked, or an attack does not say whom it judged.
    """
    found: List[Point] = []
    for run in runs:
        folders = [run.path / f"attack-{name}" for name in ATTACKS]
        folders = [folder for folder in folders if (folder / "attack.json").exists()]
        if not folders:
            raise UserError(f"{run.path} was not attacked yet: edp-mx attack {run.path}")
        name, privacy = run.path.resolve().name, run.read("privacy")
        attacks = [read_attack(folder) for folder in folders]
        drawn = _say_drawn([_origin_of(*pair) for pair in zip(attacks, folders)])
        for attack, judges in zip(attacks, drawn):
            for result in attack["results"]:
                if result["name"] in HEADLINES:
                    tpr = result["tpr_at_fpr"][f"{FPRS[0]:g}"]
                    found.append(Point(name, result["name"], result["auc"], tpr, judges, privacy))
    return found


def compare_attacks(points: Sequence[Point]) -> str:
    """A table, a row a run and attack, with ε as `edp-mx compare` has it.

    Edge cases: where not all judge members that were drawn in one way, each row has a number that
    a footnote explains.
    """
    notes: List[str] = []
    drawn = dict.fromkeys(point.judges for point in points)
    marks = {judges: f" [{i}]" for i, judges in enumerate(drawn, start=1)}
    is_mixed = len(marks) > 1
    rows = [
        [
            point.run,
            point.attack + marks[point.judges] * is_mixed,
            _say(point.auc),
            _say(point.tpr),
            format_epsilon(point.privacy["as_published"]),
            format_holding_epsilon(point.privacy, notes),
        ]
        for point in points
    ]
    header = ["run", "attack", "AUC %", "TPR % at FPR 1 %", "ε as published", "ε that holds"]
    others = [f"{mark.strip()} judges {judges}" for judges, mark in marks.items()] * is_mixed
    return "\n".join([render_table(header, rows), *footnotes(notes), *others])


def plot_attacks(points: Sequence[Point], path: Path) -> None:
    """Writes the picture to `path` and its numbers beside it, with the ending .csv.

    Edge cases: an infinite ε stands at the right edge, beyond all others.
    """
    estimate = ("", "_low", "_high")
    header = ["run", "attack", *(f"{key}{end}" for key in ("auc", "tpr") for end in estimate)]
    header += ["log10_as_published", "log10_holds_if", "judges"]
    rows = [
        [p.run, p.attack, *p.auc.values(), *p.tpr.values(), p.as_published, p.holds_if, p.judges]
        for p in points
    ]
    write_csv(path.with_suffix(".csv"), header, rows)
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key, label in zip(
        panels,
        ("as_published", "holds_if"),
        ("ε as published", "ε that holds if its conditions do"),
    ):
        _panel(axes, points, key)
        axes.set_xlabel(f"log₁₀ {label}")
    panels[0].set_ylabel("AUC, %")
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, path)


def _origin_of(attack: Dict[str, Any], folder: Path) -> Origin:
    """Whom an attack judged."""
    try:
        return Origin(**attack["origin"])
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{folder / 'attack.json'} does not say whom it judged ({error}): attack the run again"
        ) from error


def _say_drawn(origins: Sequence[Origin]) -> List[str]:
    """How the members of each attack on one run were drawn, by the options that did it.

    The weights are said where they are not all the same: the run was trained anew in between.
    """
    found = []
    for one in origins:
        size = f"at most {one.size} members (--size)" if one.size else "all members"
        parts = f"{one.member_part} against {one.non_member_part}"
        balance = ", as many of each intent (--balanced)" if one.is_balanced else ""
        is_anew = any(one.weights != other.weights for other in origins)
        weights = f", by the weights {one.weights[:12]}…" if is_anew else ""
        found.append(f"{size} of {parts}{balance}, drawn with --seed {one.seed}{weights}")
    return found


def _panel(axes: Any, points: Sequence[Point], key: str) -> None:
    """AUC with its interval against one ε."""
    finite = [getattr(p, key) for p in points if getattr(p, key) is not None]
    edge = math.ceil(max(finite, default=0.0)) + 1
    for place, (name, colour, marker) in enumerate(zip(HEADLINES, COLOURS, MARKERS)):
        aside = 0.06 * (place - 1.5)  # so that intervals at one ε are told apart
        chosen = [point for point in points if point.attack == name]
        if not chosen:
            continue
        log10s = [getattr(point, key) for point in chosen]
        places = [aside + (edge if log10 is None else log10) for log10 in log10s]
        values = [100 * p.auc["value"] for p in chosen]
        below = [100 * (p.auc["value"] - p.auc["low"]) for p in chosen]
        above = [100 * (p.auc["high"] - p.auc["value"]) for p in chosen]
        axes.errorbar(
            places, values, yerr=[below, above], fmt=marker, color=colour, capsize=3, label=name
        )
    axes.axhline(50, color="grey", linewidth=0.8)
    if len(finite) < len(points):
        axes.axvline(edge, color="grey", linewidth=0.5, linestyle=":")
        axes.annotate("∞", (edge, 0.02), xycoords=("data", "axes fraction"), ha="center")
    if not finite:
        axes.set_xticks([])
        axes.set_xlim(edge - 1, edge + 1)
    axes.grid(alpha=0.3)


def _say(estimate: Dict[str, float]) -> str:
    value, low, high = (100 * estimate[key] for key in ("value", "low", "high"))
    return f"{value:.1f} ({low:.1f} to {high:.1f})"
