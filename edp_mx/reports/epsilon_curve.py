"""ε over the epochs, as published and as it holds: a picture and its numbers."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import count_as_published, count_what_holds
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.plan import Plan
from edp_mx.reports.figures import BLUE, VERMILION, build_figure, label_axes, save_figure
from edp_mx.runtime.files import write_csv_beside

MOST_POINTS, MOST_DRAWN = 100, 16  # a point of Poisson steps takes up to a second
MANY, FEW_POINTS = 1000, 16  # above MANY epochs, FEW_POINTS are counted
LARGEST_EXPONENT = 300  # of ten, that a logarithmic axis of doubles shows
STEEP = 1.5  # decades from which on the axis is logarithmic
# The ε that holds is the thicker line below the other, so that both are seen where equal.
STYLES: Dict[str, Dict[str, Any]] = {
    "that holds": {"color": VERMILION, "marker": "s", "linewidth": 2.8},
    "as published": {"color": BLUE, "marker": "o", "linewidth": 1.1, "linestyle": "--"},
}


class EpsilonPoint(NamedTuple):
    """Both ε after a number of epochs of the plan."""

    epochs: int
    as_published: LogNumber
    holds: LogNumber


def curve_of(plan: Plan, entries: Sequence[Entry]) -> List[EpsilonPoint]:
    """Count both ε along some entries; further releases (α) count from the first point on.

    Edge cases: an epoch that was interrupted and repeated is one point, in which all its entries
    count. Of many epochs only some are counted, evenly spread, with the first and the last.
    """
    ends: Dict[int, int] = {}  # epoch from 1 -> entries until its last one
    for place, entry in enumerate(entries, start=1):
        if entry.epoch is not None:
            ends[entry.epoch + 1] = place
    epochs = sorted(ends, key=lambda epoch: ends[epoch])
    if epochs:
        ends[epochs[-1]] = len(entries)
    most = MOST_DRAWN if plan.released.draws.by_chance else MOST_POINTS
    most = most if len(ends) <= MANY else FEW_POINTS
    chosen = np.unique(np.linspace(0, len(ends) - 1, min(most, len(ends))).round().astype(int))
    points = []
    for epoch in (epochs[place] for place in chosen.tolist()):
        counted = entries[: ends[epoch]]
        published, holds = count_as_published(plan, counted), count_what_holds(plan, counted)
        points.append(EpsilonPoint(epoch, published.epsilon, holds.epsilon))
    return points


def plot_curve(
    points: Sequence[EpsilonPoint], *, delta: float, holds: Bound, path: Path, name: str = ""
) -> None:
    """Write the picture to `path` and its numbers to the same path with the suffix .csv.

    Args:
        holds: the final ε that holds; where it is infinite, its reason replaces the curve.
    """
    if holds.reasons:
        points = [EpsilonPoint(p.epochs, p.as_published, LogNumber(math.inf)) for p in points]
    header = ["epochs", "as_published", "log10_as_published", "that_holds", "log10_that_holds"]
    rows = [
        [p.epochs, p.as_published.value, p.as_published.log10, p.holds.value, p.holds.log10]
        for p in points
    ]
    write_csv_beside(path, header, rows)  # empty: ∞, or beyond a double
    figure, (axes,) = build_figure(6.0, 3.8)
    _draw(axes, points)
    label_axes(axes, "epoch", f"ε so far, at δ = {delta:.3g}", legend=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = [textwrap.fill(text, 90) for text in (name, _title(holds)) if text]
    axes.set_title("\n".join(title), fontsize=9)
    if axes.lines:
        figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    save_figure(figure, path)


def _draw(axes: Axes, points: Sequence[EpsilonPoint]) -> None:
    """Draw the curves, steep ones on a logarithmic axis; exponents where ε exceeds a double."""
    curves = {
        "that holds": [(p.epochs, p.holds) for p in points],
        "as published": [(p.epochs, p.as_published) for p in points],
    }
    exponents = [e.log10 for curve in curves.values() for _, e in curve if e.log10 is not None]
    is_huge = bool(exponents) and max(exponents) > LARGEST_EXPONENT
    for label, curve in curves.items():
        shown = [(epochs, e.log10) for epochs, e in curve if e.log10 is not None]
        if not shown:
            continue
        heights = [log10 if is_huge else 10.0**log10 for _, log10 in shown]
        axes.plot(
            [epochs for epochs, _ in shown],
            heights,
            **{**STYLES[label], "marker": STYLES[label]["marker"] if len(shown) <= 60 else None},
            markersize=3.5,
            label=f"ε {label}, {curve[-1][1].short()} in the end",
        )
    if is_huge:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
    elif exponents and max(exponents) - min(exponents) > STEEP:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)


def _title(holds: Bound) -> str:
    if holds.reasons:
        return f"no ε holds: {'; '.join(holds.reasons)}"
    if holds.conditions:
        return f"ε holds only if {' and if '.join(holds.conditions)}"
    return "ε over the epochs"
