"""Steps that take turns, round after round, and what their times say: ratios with quartiles."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence

WARM_UP = 2  # rounds that are not counted


class Spread(NamedTuple):
    """Quartiles of some measurements."""

    low: float
    median: float
    high: float

    def show(self, digits: int) -> str:
        """E.g. "1.05 (1.03–1.08)"."""
        low, median, high = (f"{value:.{digits}f}" for value in self)
        return f"{median} ({low}–{high})"


def spread(values: Sequence[float]) -> Spread:
    """Quartiles; a single value is all three of them.

    Example:
        >>> spread([1.0, 2.0, 3.0, 4.0, 5.0]).show(1)
        '3.0 (2.0–4.0)'
    """
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


def in_turn(
    steps: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    pause: float = 0.0,
    is_rotated: bool = True,
) -> Dict[str, List[float]]:
    """Seconds of each step in each round, in the order of the rounds.

    Args:
        steps: each takes one step and returns its seconds.
        rounds: how many are counted, after `WARM_UP` that are not.
        pause: seconds of rest before each step, for threads of another process to stop spinning.
        is_rotated: each round begins one step later than the last, so that none always follows the
            same one; False keeps the order, for steps that build on each other.
    """
    names = list(steps)
    seconds: Dict[str, List[float]] = {name: [] for name in names}
    for number in range(WARM_UP + rounds):
        first = number % len(names) if is_rotated else 0
        for name in names[first:] + names[:first]:
            time.sleep(pause)
            taken = steps[name]()
            if number >= WARM_UP:
                seconds[name].append(taken)
    return seconds


def ratio(seconds: Mapping[str, Sequence[float]], name: str, base: str) -> Spread:
    """One step's time in another's, both of the same round.

    Example:
        >>> ratio({"a": [1.0, 2.0], "b": [2.0, 4.0]}, "b", "a").show(2)
        '2.00 (2.00–2.00)'
    """
    return spread([one / other for one, other in zip(seconds[name], seconds[base])])


def progress(what: str) -> None:
    """Says what a benchmark is at, beside its tables."""
    print(what, file=sys.stderr, flush=True)
