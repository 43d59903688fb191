"""Results of a sweep: its trials by score, the best one, and the ε of having chosen it."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Any, List, Mapping, Sequence

from edp_mx.errors import UserError
from edp_mx.reports.table import render_table
from edp_mx.runs.sweep.config import overrides_of
from edp_mx.runs.sweep.total_epsilon import total_of
from edp_mx.runs.sweep.trial import Trial


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
