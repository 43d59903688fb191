"""ε over the epochs, as published and as it holds: a picture and its numbers."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.counting import count_as_published, count_what_holds
from edp_mx.accounting.entries import Entry
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.accounting.plan import Plan
from edp_mx.reports.curves import BLUE, VERMILION
from edp_mx.runtime.files import whole_file, write_text

MOST_POINTS = {"shuffle": 100, "poisson": 16}  # the latter take up to a second each
MANY, FEW_POINTS = 1000, 16  # epochs above which so many points must do
LARGEST_EXPONENT = 300  # of ten, that a logarithmic axis of doubles shows


@dataclass(frozen=True)
class Point:
    """Both ε when so many epochs were released."""

    epochs: int
    as_published: LogNumber
    holds: LogNumber


def curve_of(plan: Plan, entries: Sequence[Entry]) -> List[Point]:
    """Both ε along some entries; what was released beside the epochs (α) is in the first point.

    Edge cases: of many epochs a few are counted, evenly spread, the first and the last among them.
    """
    assert plan.release is not None
    ends = [n for n, entry in enumerate(entries, start=1) if entry.noise_multiplier is not None]
    most = MOST_POINTS[plan.release.sampler] if len(ends) <= MANY else FEW_POINTS
    chosen = np.unique(np.linspace(1, len(ends), min(most, len(ends))).round().astype(int))
    return [
        Point(
            epochs=epochs,
            as_published=count_as_published(plan, entries[: ends[epochs - 1]]).epsilon,
            holds=count_what_holds(plan, entries[: ends[epochs - 1]]).epsilon,
        )
        for epochs in chosen.tolist()
    ]


def plot_curve(points: Sequence[Point], *, delta: float, holds: Bound, path: Path) -> None:
    """Writes the picture to `path` and its numbers beside it, with the ending .csv.

    Args:
        holds: ε that holds in the end; where it is infinite, its reason takes the curve's place,
            and where it has conditions, they are named.
    """
    if holds.reasons:
        points = [Point(p.epochs, p.as_published, LogNumber(math.inf)) for p in points]
    write_text(path.with_suffix(".csv"), _as_csv(points))
    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    curves = (
        ("as published", BLUE, "o", [(p.epochs, p.as_published) for p in points]),
        ("that holds", VERMILION, "s", [(p.epochs, p.holds) for p in points]),
    )
    _draw(axes, curves)
    axes.set_xlabel("epochs released")
    axes.set_ylabel(f"ε at δ = {delta:.3g}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3, which="both")
    axes.set_title(_title(holds), fontsize=9, wrap=True)
    if axes.lines:
        figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=150)


def _draw(
    axes: Axes, curves: Sequence[Tuple[str, str, str, Sequence[Tuple[int, LogNumber]]]]
) -> None:
    """The curves on a logarithmic axis; one of exponents where ε leaves what a double holds."""
    exponents = [e.log10 for _, _, _, curve in curves for _, e in curve if e.log10 is not None]
    is_huge = bool(exponents) and max(exponents) > LARGEST_EXPONENT
    for label, colour, marker, curve in curves:
        shown = [(epochs, e.log10) for epochs, e in curve if e.log10 is not None]
        if not shown:
            continue
        heights = [log10 if is_huge else 10.0**log10 for _, log10 in shown]
        axes.plot(
            [epochs for epochs, _ in shown],
            heights,
            color=colour,
            marker=marker if len(shown) <= 60 else None,
            markersize=3.5,
            linewidth=3.0 if label == "as published" else 1.3,  # both are seen where they are equal
            label=f"ε {label}, {curve[-1][1]} in the end",
        )
    if is_huge:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
    elif exponents:
        axes.set_yscale("log")
        if max(exponents) - min(exponents) < 1.5:
            plain = FuncFormatter(lambda value, _: f"{value:.3g}")
            axes.yaxis.set_major_formatter(plain)
            axes.yaxis.set_minor_formatter(plain)


def _title(holds: Bound) -> str:
    """What a reader of the picture alone must know."""
    if holds.reasons:
        return f"no ε holds: {'; '.join(holds.reasons)}"
    if holds.conditions:
        return f"the ε that holds, holds only if {' and if '.join(holds.conditions)}"
    return "ε over the epochs"


def _as_csv(points: Sequence[Point]) -> str:
    """Full precision; empty where a number is infinite, or beyond a double beside its log10."""

    def both(number: LogNumber) -> List[Optional[float]]:
        return [number.value, number.log10]

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        ["epochs", "as_published", "log10_as_published", "that_holds", "log10_that_holds"]
    )
    writer.writerows([p.epochs, *both(p.as_published), *both(p.holds)] for p in points)
    return text.getvalue()
