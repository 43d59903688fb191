"""Pictures of an attack, each with its numbers: ROC curves, and the scores of both sides."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, Dict, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.attacks.directory import SavedGuesses
from edp_mx.attacks.membership.roc import Curve, area, roc_curve
from edp_mx.reports.curves import BLUE, GREEN, VERMILION
from edp_mx.runtime.files import whole_file, write_text

# The rest of Okabe–Ito, and line styles, so that curves are told apart in black and white too.
COLOURS = (VERMILION, BLUE, GREEN, "#E69F00", "#CC79A7", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)), (0, (3, 2)))
MOST_POINTS = 2000  # of a curve in the CSV and the picture
BINS = 40


def plot_roc(guessed: SavedGuesses, folder: Path) -> None:
    """Writes `roc.png`, log-log with the chance line, and `roc.csv`."""
    curves = {
        name: _thinned(roc_curve(scores, guessed.is_member))
        for name, scores in guessed.scores.items()
    }
    write_csv(
        folder / "roc.csv",
        ["attack", "fpr", "tpr", "threshold"],
        ((name, *point) for name, curve in curves.items() for point in zip(*curve)),
    )
    least = 1.0 / max(1, int((~guessed.is_member).sum()))
    figure = Figure(figsize=(5.6, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for (name, scores), colour, style in zip(guessed.scores.items(), COLOURS, STYLES):
        curve = curves[name]
        auc = area(roc_curve(scores, guessed.is_member))
        axes.plot(
            np.maximum(curve.fpr, least / 2),
            np.maximum(curve.tpr, least / 2),
            color=colour,
            linestyle=style,
            label=f"{name}, AUC {100 * auc:.1f} %",
        )
    axes.plot([least / 2, 1], [least / 2, 1], color="grey", linewidth=0.8, label="chance")
    for scale in (axes.set_xscale, axes.set_yscale):
        scale("log")
    axes.set_xlim(least / 2, 1)
    axes.set_ylim(least / 2, 1.05)
    axes.set_xlabel("false-positive rate")
    axes.set_ylabel("true-positive rate")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder / "roc.png")


def plot_histograms(guessed: SavedGuesses, folder: Path) -> None:
    """Writes `scores.png` and `scores.csv`: how the scores of both sides are spread.

    Edge cases: the bins are spread over the middle 99 % of the scores; what lies beyond (infinite
    scores too) is counted in the outermost bins.
    """
    rows = -(-len(guessed.scores) // 2)
    figure = Figure(figsize=(8.4, 2.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    places = figure.subplots(rows, 2, squeeze=False).ravel()
    lines = []
    for axes, (name, scores) in zip(places, guessed.scores.items()):
        finite = np.clip(np.nan_to_num(scores), *_middle(scores))  # (U,)
        edges = np.histogram_bin_edges(finite, BINS)
        counts = [
            np.histogram(finite[side], edges)[0] for side in (guessed.is_member, ~guessed.is_member)
        ]
        lines += [(name, *line) for line in zip(edges[:-1], edges[1:], *counts)]
        _histogram(axes, edges, counts)
        axes.set_title(name, fontsize=9)
    for axes in places[len(guessed.scores) :]:
        axes.set_visible(False)
    write_csv(folder / "scores.csv", ["attack", "from", "to", "members", "non_members"], lines)
    save(figure, folder / "scores.png")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def save(figure: Figure, path: Path) -> None:
    """A picture, whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=120)


def _histogram(axes: Axes, edges: np.ndarray, counts: Sequence[np.ndarray]) -> None:
    sides: Dict[str, str] = {"members": VERMILION, "non-members": BLUE}
    for count, (label, colour) in zip(counts, sides.items()):
        axes.stairs(count, edges, color=colour, fill=True, alpha=0.4, label=label)
        axes.stairs(count, edges, color=colour, linewidth=0.8)
    axes.set_xlabel("score (high: a member)", fontsize=8)
    axes.set_ylabel("utterances", fontsize=8)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)


def _middle(scores: np.ndarray) -> np.ndarray:
    """Where 99 % of the finite scores lie."""
    finite = scores[np.isfinite(scores)]
    return np.quantile(finite, [0.005, 0.995]) if len(finite) else np.array([0.0, 1.0])


def _thinned(curve: Curve) -> Curve:
    """At most 2,000 points: the first and last of each run of equal FPR, dense at small FPR."""
    if len(curve.fpr) <= MOST_POINTS:
        return curve
    is_corner = np.ones(len(curve.fpr), bool)
    level = (np.diff(curve.fpr) == 0, np.diff(curve.tpr) == 0)
    for flat in level:  # the inside of a straight piece is no corner
        is_corner[1:-1] &= ~(flat[:-1] & flat[1:])
    corners = np.flatnonzero(is_corner)
    if len(corners) > MOST_POINTS:
        steps = np.geomspace(1, len(corners), MOST_POINTS).astype(int) - 1
        corners = corners[np.unique(steps)]
    return Curve(*(array[corners] for array in curve))
