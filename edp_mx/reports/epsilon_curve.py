"""ε over the epochs, as published and as it holds: a picture and its numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.counting import count_as_published, count_what_holds
from edp_mx.accounting.entries import Entry
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.accounting.plan import Plan
from edp_mx.reports.figures import BLUE, VERMILION, build_figure, label_axes, save_figure
from edp_mx.runtime.files import write_csv

MOST_POINTS = {"shuffle": 100, "poisson": 16}  # a point of Poisson steps takes up to a second
MANY, FEW_POINTS = 1000, 16  # above MANY epochs, FEW_POINTS are counted
LARGEST_EXPONENT = 300  # of ten, that a logarithmic axis of doubles shows


class EpsilonPoint(NamedTuple):
    """Both ε after a number of epochs."""

    epochs: int
    as_published: LogNumber
    holds: LogNumber


def curve_of(plan: Plan, entries: Sequence[Entry]) -> List[EpsilonPoint]:
    """Count both ε along some entries; further releases (α) count from the first point on.

    Edge cases: of many epochs only some are counted, evenly spread, with the first and the last.
    """
    assert plan.release is not None
    ends = [n for n, entry in enumerate(entries, start=1) if entry.noise_multiplier is not None]
    most = MOST_POINTS[plan.release.sampler] if len(ends) <= MANY else FEW_POINTS
    chosen = np.unique(np.linspace(1, len(ends), min(most, len(ends))).round().astype(int))
    return [
        EpsilonPoint(
            epochs=epochs,
            as_published=count_as_published(plan, entries[: ends[epochs - 1]]).epsilon,
            holds=count_what_holds(plan, entries[: ends[epochs - 1]]).epsilon,
        )
        for epochs in chosen.tolist()
    ]


def plot_curve(points: Sequence[EpsilonPoint], *, delta: float, holds: Bound, path: Path) -> None:
    """Write the picture to `path` and its numbers to the same path with the suffix .csv.

    Args:
        holds: what holds in the end; where it is infinite, its reason replaces the curve.
    """
    if holds.reasons:
        points = [EpsilonPoint(p.epochs, p.as_published, LogNumber(math.inf)) for p in points]
    header = ["epochs", "as_published", "log10_as_published", "that_holds", "log10_that_holds"]
    rows = [
        [p.epochs, p.as_published.value, p.as_published.log10, p.holds.value, p.holds.log10]
        for p in points
    ]
    write_csv(path.with_suffix(".csv"), header, rows)  # empty: ∞, or beyond a double
    figure, (axes,) = build_figure(6.0, 3.8)
    curves = (
        ("as published", BLUE, "o", [(p.epochs, p.as_published) for p in points]),
        ("that holds", VERMILION, "s", [(p.epochs, p.holds) for p in points]),
    )
    _draw(axes, curves)
    label_axes(axes, "epochs released", f"ε at δ = {delta:.3g}", legend=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(_title(holds), fontsize=9, wrap=True)
    if axes.lines:
        figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    save_figure(figure, path)


def _draw(
    axes: Axes, curves: Sequence[Tuple[str, str, str, Sequence[Tuple[int, LogNumber]]]]
) -> None:
    """Draw the curves on a logarithmic axis, or their exponents where ε exceeds a double."""
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
            linewidth=3.0 if label == "as published" else 1.3,  # both are seen where equal
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
    if holds.reasons:
        return f"no ε holds: {'; '.join(holds.reasons)}"
    if holds.conditions:
        return f"ε holds only if {' and if '.join(holds.conditions)}"
    return "ε over the epochs"
