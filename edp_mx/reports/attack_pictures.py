"""Pictures of attacks and audits, each with its numbers: ROC curves, histograms of scores."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from edp_mx.attacks.directory import SavedGuesses
from edp_mx.attacks.membership.roc import Curve, area, roc_curve
from edp_mx.errors import UserError
from edp_mx.reports.figures import (
    COLOURS,
    build_figure,
    build_panels,
    draw_histograms,
    label_axes,
    save_figure,
    set_roc_axes,
)
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv

# Line styles tell curves apart in black and white too.
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)), (0, (3, 2)))
SHARE = "share of each side, %"
MOST_POINTS = 2000  # of a curve in the CSV and the picture


def plot_roc(guessed: SavedGuesses, folder: Path) -> Figure:
    """Write `roc.png`, log-log with the line of chance, and `roc.csv`; return the figure."""
    whole = {name: roc_curve(scores, guessed.is_member) for name, scores in guessed.scores.items()}
    curves = {name: _thinned(curve) for name, curve in whole.items()}
    write_csv(
        folder / "roc.csv",
        ["attack", "fpr", "tpr", "threshold"],
        ((name, *point) for name, curve in curves.items() for point in zip(*curve)),
    )
    least = 0.5 / max(1, int((~guessed.is_member).sum()))
    figure, (axes,) = build_figure(3.7, 3.2 + 0.17 * (1 + len(curves)))
    for (name, curve), colour, style in zip(curves.items(), COLOURS, STYLES):
        axes.plot(
            np.maximum(curve.fpr, least),
            np.maximum(curve.tpr, least),
            color=colour,
            linestyle=style,
            label=f"{name}, AUC {100 * area(whole[name]):.1f} %",
        )
    set_roc_axes(axes, least)
    label_axes(axes, "false-positive rate", "true-positive rate", legend=False)
    figure.legend(loc="outside lower center", frameon=False, fontsize=8, handlelength=3)
    save_figure(figure, folder / "roc.png")
    return figure


def plot_histograms(guessed: SavedGuesses, folder: Path) -> Figure:
    """Write where the scores of both sides lie, `scores.png` and `.csv`; return the figure."""
    figure, places = build_panels(len(guessed.scores), 3.7, 2.5, columns=1)
    lines = []
    for axes, (name, scores) in zip(places, guessed.scores.items()):
        bins = draw_histograms(axes, scores, guessed.is_member, ("members", "non-members"))
        lines += [(name, *line) for line in bins]
        label_axes(axes, "rank of the score, % (high: a member)", SHARE, title=name, legend=False)
    write_csv(folder / "scores.csv", ["attack", "from", "to", "members", "non_members"], lines)
    save_figure(figure, folder / "scores.png")
    return figure


def plot_canaries(run: RunDirectory) -> None:
    """Write `scores.png` and `scores.csv` from `canaries.csv`, as far as scores are finite."""
    path = run.path / "canaries.csv"
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
        scores = np.array([float(row["score"]) for row in rows])  # (m,)
        members = np.array([row["is_member"] == "1" for row in rows])  # (m,)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    is_finite = np.isfinite(scores)
    if not is_finite.any():
        return  # the model diverged: there is nothing to draw
    figure, (axes,) = build_figure(5.0, 3.2)
    labels = ("trained on", "left out")
    bins = draw_histograms(axes, scores[is_finite], members[is_finite], labels)
    write_csv(run.path / "scores.csv", ["from", "to", "members", "non_members"], bins)
    label_axes(axes, "rank of the fall of the loss, %", SHARE, title="canaries", legend=False)
    save_figure(figure, run.path / "scores.png")


def _thinned(curve: Curve) -> Curve:
    """Keep at most 2,000 points: the corners, dense at small FPR."""
    if len(curve.fpr) <= MOST_POINTS:
        return curve
    is_corner = np.ones(len(curve.fpr), bool)
    level = (np.diff(curve.fpr) == 0, np.diff(curve.tpr) == 0)
    for flat in level:  # the inside of a straight line is no corner
        is_corner[1:-1] &= ~(flat[:-1] & flat[1:])
    corners = np.flatnonzero(is_corner)
    if len(corners) > MOST_POINTS:
        steps = np.geomspace(1, len(corners), MOST_POINTS).astype(int) - 1
        corners = corners[np.unique(steps)]
    return Curve(*(array[corners] for array in curve))
