"""SER against ε, and against the number of utterances, as far as there are records."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from edp_mx.reports.figures import COLOURS, MOST_COLUMNS, build_panels, label_axes
from edp_mx.reports.table import render_table
from edp_mx.runs.measurements import Measurement, Spread

EPSILONS = (3.0, 8.0)  # of the plot against the number of utterances
HEADER = ("corpus", "family", "mechanism", "ε", "n", "SER %", "from–to", "intents %", "slot F1",
          "runs")  # fmt: skip
_PANELS: Dict[str, Any] = {"width": 3.6, "height": 3.2, "least_columns": 1.5, "below": 0.5,
                           "share_y": True}  # fmt: skip
_GAP = 0.45  # from the largest ε to ∞, in decades


class Style(NamedTuple):
    """How a mechanism is named and drawn."""

    name: str
    line: str
    marker: str
    size: float


STYLES = {
    "dp_sgd": Style("DP-SGD", "-", "o", 5),
    "edp_sgd": Style("eDP-SGD", "--", "s", 5),
    "none": Style("no privacy", ":", "*", 8),
}


class Plot(NamedTuple):
    """A picture and the same numbers as a Markdown table."""

    figure: Figure
    table: str


def plot_by_epsilon(
    measured: Sequence[Measurement], *, columns: int = MOST_COLUMNS
) -> Optional[Plot]:
    """Return SER against ε, a panel for each corpus; None where no record has a finite ε.

    Args:
        measured: the chosen ones. Of each corpus the n with the most different ε is shown, or the
            largest of several.
        columns: of panels, at most.
    """
    corpora = sorted({each.corpus for each in measured if math.isfinite(each.epsilon)})
    if not corpora:
        return None
    shown = [_at_one_n([m for m in measured if m.corpus == corpus]) for corpus in corpora]
    every = [each for points in shown for each in points]
    ticks = sorted({1.0, *EPSILONS, *(each.epsilon for each in every)} - {math.inf})
    panels = {**_PANELS, "columns": columns, "least_columns": min(columns, 1.5)}
    figure, places = build_panels(len(corpora), **panels)
    colours = _add_legend(figure, every, by="family", columns=5 if columns > 1 else 2)
    for axes, points in zip(places, shown):
        for (family, mechanism), curve in _curves(points, ("family", "mechanism")).items():
            spreads = [(_place_of(each.epsilon, ticks), each.test["ser"]) for each in curve]
            _draw(axes, spreads, colour=colours[family], mechanism=mechanism)
        _mark_epsilons(axes, ticks)
        title = f"{points[0].corpus}, n = {points[0].n:,}"
        _label(axes, "ε that holds, δ = 1/(2n)", title)
    places[0].set_ylim(bottom=0)
    return Plot(figure, table_of(every))


def plot_by_utterances(measured: Sequence[Measurement]) -> Optional[Plot]:
    """Return SER against n by chosen measurements, a panel for each family and of `EPSILONS`.

    Edge cases: None where no record has such an ε.
    """
    epsilons = [e for e in EPSILONS if any(each.epsilon == e for each in measured)]
    if not epsilons:
        return None
    corpora = {each.corpus for each in measured if each.epsilon in epsilons}
    shown = [m for m in measured if m.corpus in corpora and m.epsilon in (*epsilons, math.inf)]
    families = sorted({each.family for each in shown})
    figure, places = build_panels(len(epsilons) * len(families), columns=len(epsilons), **_PANELS)
    colours = _add_legend(figure, shown, by="corpus")
    for axes, (family, epsilon) in zip(places, product(families, epsilons)):
        points = [m for m in shown if m.family == family and m.epsilon in (epsilon, math.inf)]
        for (corpus, mechanism), curve in _curves(points, ("corpus", "mechanism")).items():
            spreads = [(each.n, each.test["ser"]) for each in curve]
            _draw(axes, spreads, colour=colours[corpus], mechanism=mechanism)
        _mark_sizes(axes, [each.n for each in shown])
        title = f"{family.upper()}, ε = {epsilon:g}, δ = 1/(2n)"
        _label(axes, "utterances for training, n", title)
    places[0].set_ylim(bottom=0)
    return Plot(figure, table_of(shown))


def table_of(measured: Sequence[Measurement]) -> str:
    """Return the numbers of a plot."""
    rows = []
    for each in measured:
        ser, (intents, _, _), (slots, _, _) = (each.test[name] for name in each.test)
        several = len(each.records) > 1
        rows.append(
            [
                each.corpus,
                each.family,
                STYLES[each.mechanism].name,
                number_of(each.epsilon),
                f"{each.n:,}",
                f"{100 * ser.mean:.1f}",
                f"{100 * ser.low:.1f}–{100 * ser.high:.1f}" if several else "",
                f"{100 * intents:.1f}",
                f"{100 * slots:.1f}",
                str(len(each.records)),
            ]
        )
    return render_table(HEADER, rows)


def number_of(epsilon: float) -> str:
    return f"{epsilon:g}" if math.isfinite(epsilon) else "∞"


def _at_one_n(points: Sequence[Measurement]) -> List[Measurement]:
    """The points of the n with the most ε; of several the largest."""
    sizes = {each.n for each in points}
    n = max(sizes, key=lambda n: (len({each.epsilon for each in points if each.n == n}), n))
    return [each for each in points if each.n == n]


def _curves(
    points: Sequence[Measurement], by: Tuple[str, str]
) -> Dict[Tuple[str, str], List[Measurement]]:
    """The points by two of their attributes."""
    curves: Dict[Tuple[str, str], List[Measurement]] = {}
    for each in points:
        curves.setdefault((getattr(each, by[0]), getattr(each, by[1])), []).append(each)
    return curves


def _draw(
    axes: Axes, points: Sequence[Tuple[float, Spread]], *, colour: str, mechanism: str
) -> None:
    """Draw one curve, its range over seeds as bars; a single point without privacy is a line."""
    points = sorted(points)
    means = [100 * spread.mean for _, spread in points]
    below = [100 * (spread.mean - spread.low) for _, spread in points]
    above = [100 * (spread.high - spread.mean) for _, spread in points]
    style = STYLES[mechanism]
    if mechanism == "none" and len(points) == 1:
        axes.axhline(means[0], color=colour, linestyle=style.line, linewidth=1.2)
    axes.errorbar(
        [x for x, _ in points],
        means,
        yerr=[below, above],
        color=colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=style.size,
        capsize=3,
    )


def _place_of(epsilon: float, ticks: Sequence[float]) -> float:
    """The place of an ε: its logarithm; ∞ is to the right of the largest tick."""
    return math.log10(epsilon) if math.isfinite(epsilon) else math.log10(ticks[-1]) + _GAP


def _mark_epsilons(axes: Axes, ticks: Sequence[float]) -> None:
    """Name the ε, ∞ among them, and part ∞ from the others."""
    places = [_place_of(epsilon, ticks) for epsilon in (*ticks, math.inf)]
    axes.set_xticks(places, [*(f"{epsilon:g}" for epsilon in ticks), "∞"])
    axes.set_xlim(places[0] - 0.1, places[-1] + 0.1)
    axes.axvline(places[-1] - _GAP / 2, color="0.6", linewidth=0.8)


def _mark_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with plain numbers, the same in all panels."""
    axes.set_xscale("log")
    axes.set_xlim(min(sizes) / 1.5, max(sizes) * 1.5)
    subs = (1, 2, 5) if max(sizes) < 10 * min(sizes) else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _label(axes: Axes, x: str, title: str) -> None:
    place = axes.get_subplotspec()
    y = "test SER, %" if place and place.is_first_col() else ""
    label_axes(axes, x, y, title=title, legend=False)
    axes.tick_params(labelsize=8)


def _add_legend(
    figure: Figure, points: Sequence[Measurement], *, by: str, columns: int = 5
) -> Dict[str, str]:
    """Explain colours (family or corpus) and lines (mechanism) once; return the colours."""
    names = sorted({getattr(each, by) for each in points})
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    said = {name: name.upper() if by == "family" else name for name in names}
    handles = [Line2D([], [], color=colours[name], linewidth=4, label=said[name]) for name in names]
    for mechanism in sorted({each.mechanism for each in points}):
        style = STYLES[mechanism]
        handles.append(
            Line2D([], [], color="0.3", linestyle=style.line, marker=style.marker,
                   markersize=style.size, label=style.name)
        )  # fmt: skip
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )
    return colours
