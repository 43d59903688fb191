"""What a benchmark's figures are held against: the bars of the issue, and a guard's with slack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List

from rounds import Spread, spread


@dataclass(frozen=True)
class Bar:
    """A limit for one figure of a benchmark.

    Attributes:
        what: the figure.
        read: the figure in each round, from what the benchmark measured.
        limit: what it is to be at most, or at least.
        guard: the same with slack, for a test that a busy machine may not fail.
        is_least: whether it is to be at least the limit.
        digits: shown of it.
    """

    what: str
    read: Callable[[Any], List[float]]
    limit: float
    guard: float
    is_least: bool = False
    digits: int = 2

    def spread(self, measured: Any) -> Spread:
        """Quartiles of the figure."""
        return spread(self.read(measured))

    def holds(self, measured: Any) -> bool:
        """Whether the median is within the limit."""
        return self._is_within(measured, self.limit)

    def guards(self, measured: Any) -> bool:
        """Whether the median is within the limit with slack."""
        return self._is_within(measured, self.guard)

    def show_limit(self) -> str:
        """E.g. "≤ 1.07"."""
        return f"{'≥' if self.is_least else '≤'} {self.limit:g}"

    def _is_within(self, measured: Any, limit: float) -> bool:
        median = self.spread(measured).median
        return median >= limit if self.is_least else median <= limit


def quotient(*path: str, of: str, by: str) -> Callable[[Any], List[float]]:
    """Reads one list of figures over another, round by round, at a place in what was measured.

    Example:
        >>> quotient("clc", of="a", by="b")({"clc": {"a": [3.0, 8.0], "b": [2.0, 4.0]}})
        [1.5, 2.0]
    """

    def read(measured: Any) -> List[float]:
        for key in path:
            measured = measured[key]
        return [one / other for one, other in zip(measured[of], measured[by])]

    return read
