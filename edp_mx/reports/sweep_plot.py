"""A picture of trials: their score on validation against each setting that differs."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edp_mx.reports.figures import COLOURS, MOST_COLUMNS, build_panels, label_axes
from edp_mx.reports.sweep_table import text_of, varied
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.task import Metric

_MARKERS = "osD^vPX"
_LOG_FROM = 100.0  # a setting whose values span so large a factor has a logarithmic axis


class Point(NamedTuple):
    """The settings of a trial, by dotted key, and its score on validation as a share of 1."""

    values: Mapping[str, Any]
    score: float


def plot_sweep(
    points: Sequence[Point],
    *,
    metric: Metric = INTENT_SLOT.metric,
    rung: Optional[str] = None,
    columns: int = MOST_COLUMNS,
) -> Optional[Figure]:
    """Return a panel for each setting that differs; None where there are fewer than two trials.

    A ring marks the best trial.

    Args:
        rung: the setting that grows from rung to rung, which the colours show; None without rungs.
        columns: of panels, at most.
    """
    keys = [key for key in varied([point.values for point in points]) if key != rung]
    if not keys:
        return None
    best = min(points, key=lambda point: metric.cost(point.score))
    rungs = sorted({point.values[rung] for point in points}) if rung else [None]
    figure, places = build_panels(len(keys), 4.2, 3.4, columns=columns, share_y=True)
    for i, (axes, key) in enumerate(zip(places, keys)):
        place = _axis(axes, [point.values[key] for point in points])
        for number, each in enumerate(rungs):
            of_it = [point for point in points if rung is None or point.values[rung] == each]
            axes.plot(
                [place(point.values[key]) for point in of_it],
                [metric.factor * point.score for point in of_it],
                linestyle="",
                marker=_MARKERS[number % len(_MARKERS)],
                color=COLOURS[number % len(COLOURS)],
                alpha=0.7,
                label=f"{rung} = {each}" if rung else "a trial",
            )
        axes.plot(place(best.values[key]), metric.factor * best.score, linestyle="", marker="o",
                  markersize=13, markerfacecolor="none", color="0.3", label="the best")  # fmt: skip
        is_first = i % columns == 0
        label_axes(axes, key, f"validation {metric.title}" if is_first else "", legend=i == 0)
    return figure


def _axis(axes: Axes, values: List[Any]) -> Callable[[Any], float]:
    """Set up the axis of a setting; return the place of a value on it."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        if min(values) > 0 and max(values) >= _LOG_FROM * min(values):
            axes.set_xscale("log")
            axes.grid(False, which="minor")
        return float
    names = sorted(set(map(text_of, values)))
    axes.set_xticks(range(len(names)), names)
    return lambda value: names.index(text_of(value))
