"""The epochs of a run in its record: short columns of rounded numbers."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from edp_mx.tasks.task import Task

Columns = Dict[str, Tuple[Optional[float], ...]]

MOST_EPOCHS = 60
_KEPT = ("noise_multiplier", "clipped_fraction", "processor_seconds")  # beside loss and score


def by_epoch(rows: Sequence[Mapping[str, Any]], task: Task) -> Columns:
    """Return a record's columns of the lines of `metrics.jsonl`: `epoch`, from 1, and others.

    Of a longer run, `MOST_EPOCHS` epochs are kept, the first and the last among them.
    """
    count = min(len(rows), MOST_EPOCHS)
    places = [round(i * (len(rows) - 1) / max(1, count - 1)) for i in range(count)]
    score = task.metric.key
    kept = {key: (key, 1.0) for key in ("loss", score, *_KEPT)}  # name and divisor
    kept[score] = (f"validation_{score}", task.metric.factor)
    columns: Columns = {"epoch": tuple(place + 1 for place in places)}
    for key, (name, divisor) in kept.items():
        values = [rows[place].get(key) for place in places]
        if any(value is not None for value in values):
            columns[name] = tuple(None if v is None else rounded(v / divisor) for v in values)
    return columns


def rounded(value: float) -> float:
    """Return a number with four digits."""
    return float(f"{value:.4g}")
