"""The report at the end of each epoch: scores, ε so far, clipping, time left."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Dict, Mapping

from edp_mx.dp.accounting.lognumber import LogNumber, log_of
from edp_mx.runs.recount import EPSILONS, epsilons_of
from edp_mx.runtime.progress import duration

if TYPE_CHECKING:
    from edp_mx.dp.spending import Spending
    from edp_mx.tasks.task import Task
    from edp_mx.training.loop import EpochSummary

logger = logging.getLogger(__name__)

SHARE = 0.05  # of the time of training, that counting ε may take
EVERY = 2.0  # seconds, at least, between two epochs that are told of


class EpsilonSoFar:
    """Counts both ε at the end of epochs; on rank 0.

    Where a count is slow (Poisson steps whose noise decays) and epochs are short, it is left out of
    some epochs, so that it takes no more than `SHARE` of the time.
    """

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
        self._trained = self._counted = 0.0  # seconds
        self._last = 0.0  # the last count, in seconds

    def after(self, epoch: EpochSummary, *, is_last: bool) -> Dict[str, float]:
        """Return both ε as columns of `metrics.jsonl`; none without a mechanism, or when slow."""
        self._trained += epoch.seconds
        is_slow = self._counted + self._last > SHARE * self._trained
        if self._spending.plan.release is None or (is_slow and not is_last):
            return {}
        started = time.perf_counter()
        spent = self._spending.spent()
        self._last = time.perf_counter() - started
        self._counted += self._last
        found = epsilons_of(spent)
        return {name: float("inf") if value is None else value for name, value in found.items()}


class EpochLines:
    """Tells of the first epoch and the last, and of those between where they take a while.

    Args:
        done: the epochs before this process.
    """

    def __init__(self, epochs: int, task: Task, *, done: int) -> None:
        self._epochs, self._task, self._done = epochs, task, done
        self._seconds, self._told = 0.0, -math.inf

    def tell(self, row: Mapping[str, Any], *, is_last: bool) -> None:
        """Log the lines of `describe_epoch`, or nothing."""
        self._seconds += row["clock_seconds"]
        if is_last or self._seconds - self._told >= EVERY:
            self._told = self._seconds
            left = self._seconds / (row["epoch"] - self._done) * (self._epochs - row["epoch"])
            logger.info("%s", describe_epoch(row, self._epochs, self._task, left=left))


def describe_epoch(row: Mapping[str, Any], epochs: int, task: Task, *, left: float) -> str:
    """Return a line on the scores of an epoch, and one on ε, clipping and time.

    Args:
        row: of `metrics.jsonl`; read from there, it has None for numbers that are not finite. Its
            `clock_seconds` are those of training, scoring and counting ε together.
        left: until the end of the training, in seconds.
    """
    scores = (
        f"epoch {row['epoch']}/{epochs}: loss {row['loss']:.4f}, "
        f"validation {', '.join(f'{m.name} {row[m.key]:.2f}{m.unit}' for m in task.metrics)}"
    )
    more = [describe_epsilon(row)]
    if "clipped_fraction" in row:
        more.append(f"{100 * row['clipped_fraction']:.0f} % clipped")
    seconds = row["clock_seconds"]
    more.append(f"{duration(seconds) if seconds >= 10 else f'{seconds:.1f} s'} an epoch")
    if row["epoch"] < epochs:
        more.append(f"about {duration(left)} left")
    return f"{scores}\n  {', '.join(text for text in more if text)}"


def describe_epsilon(row: Mapping[str, Any]) -> str:
    """Return both ε so far of a row; "" where they were not counted.

    Example:
        >>> describe_epsilon({"epsilon_as_published": 3.0, "epsilon_holds": None,
        ...                   "epsilon_holds_if": 2.2e6})
        'ε so far ∞ (2.2 million on conditions; 3 as published)'
    """
    if "epsilon_holds" not in row:
        return ""
    numbers = {name: row[key] for key, name in EPSILONS.items()}
    said = {
        name: LogNumber(math.inf if value is None else log_of(value)).short()
        for name, value in numbers.items()
    }
    granted = "" if said["holds"] == said["holds_if"] else f"{said['holds_if']} on conditions; "
    return f"ε so far {said['holds']} ({granted}{said['as_published']} as published)"
