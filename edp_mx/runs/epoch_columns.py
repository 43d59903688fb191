"""The epochs of a run in its record: short columns of rounded numbers."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from edp_mx.tasks.task import Task

Columns = Dict[str, Tuple[Optional[float], ...]]

MOST_EPOCHS = 60
# Beside loss and score, by the name in `metrics.jsonl`: the name in a record, and its divisor.
_KEPT = {
    "noise_multiplier": ("noise_multiplier", 1),
    "clipped_fraction": ("clipped_fraction", 1),
    "processor_seconds": ("processor_seconds", 1),
}


def by_epoch(rows: Sequence[Mapping[str, Any]], task: Task) -> Columns:
    """Return the columns of a record: `epoch`, from 1, and the measurements of it.

    Of a longer run, `MOST_EPOCHS` epochs are kept, the first and the last among them.

    Args:
        rows: the lines of `metrics.jsonl`.
    """
    count = min(len(rows), MOST_EPOCHS)
    places = [round(i * (len(rows) - 1) / max(1, count - 1)) for i in range(count)]
    score = task.metric.key
    kept = {"loss": ("loss", 1), score: (f"validation_{score}", task.metric.factor), **_KEPT}
    columns: Columns = {"epoch": tuple(place + 1 for place in places)}
    for key, (name, divisor) in kept.items():
        values = [rows[place].get(key) for place in places]
        if any(value is not None for value in values):
            columns[name] = tuple(None if v is None else rounded(v / divisor) for v in values)
    return columns


def rounded(value: float) -> float:
    """Return a number with four digits."""
    return float(f"{value:.4g}")
