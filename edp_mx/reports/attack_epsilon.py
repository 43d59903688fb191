"""What ε buys: the success of the attacks on several runs against the runs' ε."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.attacks.roc import FPRS
from edp_mx.errors import UserError
from edp_mx.experiments.attack_directory import read_attack
from edp_mx.experiments.run_directory import RunDirectory
from edp_mx.reports.attack_pictures import COLOURS, save, write_csv
from edp_mx.reports.summary import say_epsilon
from edp_mx.reports.table import render_table

ATTACKS = ("shadow", "threshold", "lira")
HEADLINES = ("shadow classifier", "loss", "LiRA online", "LiRA offline")
MARKERS = ("o", "s", "^", "v")


class Point(NamedTuple):
    """One attack on one run; ε as published and ε that holds, log10, None where infinite."""

    run: str
    attack: str
    auc: Dict[str, float]
    tpr: Dict[str, float]
    as_published: Optional[float]
    holds: Optional[float]
    said: str


def points_of(runs: Sequence[RunDirectory]) -> List[Point]:
    """The headline results of each run's attacks, in the order of the runs.

    Raises:
        UserError: a run was never attacked.
    """
    found: List[Point] = []
    for run in runs:
        folders = [run.path / f"attack-{name}" for name in ATTACKS]
        folders = [folder for folder in folders if (folder / "attack.json").exists()]
        if not folders:
            raise UserError(f"{run.path} was not attacked yet: edp-mx attack {run.path}")
        privacy = run.read("privacy")
        published, holds = privacy["as_published"], privacy["holds_if"]
        for folder in folders:
            for result in read_attack(folder)["results"]:
                if result["name"] in HEADLINES:
                    found.append(
                        Point(
                            run.path.resolve().name,
                            result["name"],
                            result["auc"],
                            result["tpr_at_fpr"][f"{FPRS[0]:g}"],
                            published["log10_epsilon"],
                            holds["log10_epsilon"],
                            f"{say_epsilon(published)} / {say_epsilon(holds)}",
                        )
                    )
    return found


def compare_attacks(points: Sequence[Point]) -> str:
    """A table, a row a run and attack."""
    rows = [
        [
            point.run,
            point.attack,
            _say(point.auc),
            _say(point.tpr),
            point.said,
        ]
        for point in points
    ]
    header = ["run", "attack", "AUC %", "TPR % at FPR 1 %", "ε as published / that holds"]
    return render_table(header, rows)


def plot_attacks(points: Sequence[Point], path: Path) -> None:
    """Writes the picture to `path` and its numbers beside it, with the ending .csv.

    Edge cases: an infinite ε stands at the right edge, beyond all others.
    """
    rows = [
        [p.run, p.attack, *p.auc.values(), *p.tpr.values(), p.as_published, p.holds] for p in points
    ]
    estimate = ("", "_low", "_high")
    header = ["run", "attack", *(f"{key}{end}" for key in ("auc", "tpr") for end in estimate)]
    write_csv(path.with_suffix(".csv"), [*header, "log10_as_published", "log10_holds"], rows)
    figure = Figure(figsize=(9.2, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, key, label in zip(
        panels, ("as_published", "holds"), ("ε as published", "ε that holds, on its conditions")
    ):
        _panel(axes, points, key)
        axes.set_xlabel(f"log₁₀ {label}")
    panels[0].set_ylabel("AUC, %")
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, path)


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
