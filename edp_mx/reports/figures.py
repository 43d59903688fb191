"""Figures of all reports: colours, layout, histograms, saving."""

from __future__ import annotations

import math
from pathlib import Path
from typing import List, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.runtime.files import whole_file

# Okabe–Ito, which colour-blind readers can distinguish.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
COLOURS = (VERMILION, BLUE, GREEN, "#E69F00", "#CC79A7", "#56B4E9", "#000000")
BINS = 20
DOTS = 120  # per inch
MOST_COLUMNS = 3  # of a grid of panels


def build_figure(
    width: float, height: float, *, rows: int = 1, columns: int = 1, share_y: bool = False
) -> Tuple[Figure, Sequence[Axes]]:
    """Build a figure with a size in inches, and return it with its axes, row by row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y)
    for one in axes.ravel():
        one.grid(alpha=0.3, which="both")
    return figure, list(axes.ravel())


def build_panels(
    count: int,
    width: float,
    height: float,
    *,
    columns: int = MOST_COLUMNS,
    least_columns: float = 1,
    below: float = 0,
    share_y: bool = False,
) -> Tuple[Figure, List[Axes]]:
    """Build a figure with a grid of panels, and return it with their axes, row by row.

    Args:
        count: of the panels; the rest of the grid is left empty.
        width: of a panel, in inches.
        height: of a panel, in inches.
        least_columns: the figure is at least as wide as so many, for its legend.
        below: room for a legend below the panels, in inches.
    """
    columns = min(count, columns)
    rows = -(-count // columns)
    figure, axes = build_figure(
        width * max(columns, least_columns),
        height * rows + below,
        rows=rows,
        columns=columns,
        share_y=share_y,
    )
    for one in axes[count:]:
        one.set_visible(False)
    return figure, list(axes[:count])


def label_axes(axes: Axes, x: str, y: str = "", *, title: str = "", legend: bool = True) -> None:
    """Name the axes, and list the labelled curves if asked to."""
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.set_title(title, fontsize=10)
    if legend:
        axes.legend(frameon=False, fontsize=8)


def set_roc_axes(axes: Axes, least: float) -> None:
    """Make both axes of a ROC curve logarithmic, from `least` on, with the line of chance."""
    axes.plot([least, 1], [least, 1], color="grey", linewidth=0.8, label="chance")
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.05))
    axes.grid(False, which="minor")


def exponent_ticks(
    exponents: Sequence[float], *, has_infinity: bool = True
) -> Tuple[List[float], List[str]]:
    """Return the places and names of ticks for decimal logarithms of ε, and the last one for ∞.

    The place of ∞ is beyond all finite ε, by an eighth of their axis and half a decade at least.

    Example:
        >>> exponent_ticks([0.9])
        ([0.0, 1.4], ['0', '∞'])
    """
    least, largest = math.floor(min([0.0, *exponents])), max([0.0, *exponents])
    step = max(1, round((largest - least) / 5))
    whole = list(range(least, math.floor(largest) + 1, step))
    places, names = [*map(float, whole)], [*map(str, whole)]
    if has_infinity:
        places.append(largest + max(0.5, (largest - least) / 8))
        names.append("∞")
    return places, names


def draw_histograms(
    axes: Axes, values: np.ndarray, is_member: np.ndarray, labels: Tuple[str, str]
) -> Sequence[Tuple[float, ...]]:
    """Draw the shares of members and of others in bins that hold equally many of all.

    Where the two are alike, all bins are alike, however long the tails of the values are. The axis
    has ranks, in percent of all.

    Returns:
        (from, to, members, others) of each bin; a last value belongs to the last bin.
    """
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1), method="nearest"))
    edges = np.repeat(edges, 2) if len(edges) == 1 else edges  # (bins + 1,)
    counts = [np.histogram(values[side], edges)[0] for side in (is_member, ~is_member)]
    below = [(values < edge).mean() for edge in edges[:-1]]
    places = 100 * np.array([*below, 1.0])  # (bins + 1,): how many of all lie below each edge
    for count, label, colour in zip(counts, labels, (VERMILION, BLUE)):
        shares = 100 * count / max(1, count.sum())
        axes.stairs(shares, places, color=colour, fill=True, alpha=0.3)
        axes.stairs(shares, places, color=colour, linewidth=1.2, label=label,
                    linestyle="-" if colour == VERMILION else "--")  # fmt: skip
    axes.margins(y=0.25)  # the legend's room
    axes.legend(loc="upper center", ncols=2, frameon=False, fontsize=8)
    axes.set_xticks(range(0, 101, 25))
    return list(zip(edges[:-1], edges[1:], *counts))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=DOTS)
