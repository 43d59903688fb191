"""Results of a sweep: its trials by score and in a picture, and the ε of having chosen the best."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edp_mx.errors import UserError
from edp_mx.reports.figures import COLOURS, MOST_COLUMNS, build_panels, label_axes
from edp_mx.reports.table import render_table
from edp_mx.runs.sweep.total_epsilon import total_of
from edp_mx.runs.sweep.trial import Trial
from edp_mx.runtime.config_files import overrides_of
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.task import Metric

_MARKERS = "osD^vPX"
_LOG_FROM = 100.0  # a setting whose values span so large a factor has a logarithmic axis


def describe_sweep(trials: Sequence[Trial], folder: Path) -> str:
    """Return the table, failed and stopped trials, the best trial's `--set`, and the price."""
    scored = sorted((t for t in trials if t.score is not None), key=lambda trial: trial.cost)
    keys = varied([trial.values for trial in trials])
    rows = [
        [
            trial.hash,
            trial.task.metric.number(trial.score or 0.0),
            *(text_of(trial.values.get(key)) for key in keys),
            f"{fmean(record.seconds for record in trial.records) / 60:.1f}",
        ]
        for trial in scored
    ]
    lines = ["no trial was trained to its end"]
    if scored:
        name = f"valid. {scored[0].task.metric.narrow_heading}"
        header = ("trial", name, *(key.split(".")[-1] for key in keys), "min")
        lines = [render_table(header, rows)]
    for trial in (each for each in trials if each.error):
        what = "stopped" if trial.is_stopped else "failed"
        lines.append(f"{what}: {' '.join(overrides_of(trial.values))}: {trial.error}")
    if scored:
        lines += ["", *_best(scored)]
    lines += _price(trials, folder)
    return "\n".join(lines)


def varied(values: Sequence[Mapping[str, Any]]) -> List[str]:
    """Return the settings in which trials differ, from the settings of each by dotted key."""
    first = values[0] if values else {}
    return [key for key in first if any(each.get(key) != first[key] for each in values)]


def _best(scored: Sequence[Trial]) -> List[str]:
    """Lines about the best trial, and about the ε of having chosen it."""
    runs, task = scored[0].records, scored[0].task
    test = {each.key: fmean(run.test[each.key] for run in runs) for each in task.metrics}
    settings = " ".join(overrides_of(scored[0].values))
    return [
        f"best: --set {settings}",
        f"  test {task.sentence(test)}",
        f"  chosen on the validation part of {runs[0].corpus}, which no ε covers unless that "
        "corpus is public",
    ]


def _price(trials: Sequence[Trial], folder: Path) -> List[str]:
    """The ε of all trainings together, failed ones included."""
    try:
        total = total_of(trials, folder)
    except UserError as error:
        return [f"what the trainings have spent together cannot be said: {error}"]
    if total is None:
        return []
    said = f"{total.epsilon:.3g} at δ = {total.delta:.2g}"
    if total.epsilon == math.inf:
        said = "∞, or more than can be written"
    several = f"the {total.trainings} trainings were" if total.trainings > 1 else "one training was"
    lines = [f"{several} made on one training part, to the end or not: together, ε = {said}"]
    return lines + [f"  if {text}" for text in total.conditions]


def text_of(value: Any) -> str:
    """Return how the value of a setting is written."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


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
