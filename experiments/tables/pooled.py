"""How far trainings differ by chance, from the rows of a corpus that have several seeds."""

from __future__ import annotations

import math
from typing import Dict, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple

from scipy.stats import t

CONFIDENCE = 0.95
BySeed = Mapping[str, Tuple[float, ...]]  # by the name of a score, its value of each seed


class Pooled(NamedTuple):
    """The standard deviation of a seed relative to the mean of its row, and its degrees of freedom.

    Source: the pooled variance, Σ (x / mean − 1)² / Σ (seeds of a row − 1) over all rows.
    """

    deviation: float
    freedom: int

    @classmethod
    def of(cls, rows: Iterable[Sequence[float]]) -> Optional[Pooled]:
        """Return it for the values of rows, one per seed; None if no row has two that tell."""
        squares, freedom = 0.0, 0
        for values in rows:
            mean = math.fsum(values) / max(1, len(values))
            if len(values) > 1 and mean:
                squares += math.fsum((value / mean - 1) ** 2 for value in values)
                freedom += len(values) - 1
        return cls(math.sqrt(squares / freedom), freedom) if freedom else None

    def interval(self, ratio: float, seeds: int, of_sgd: int) -> float:
        """Return the half width of the interval of a ratio of two means, at `CONFIDENCE`.

        Args:
            ratio: of a row's mean to SGD's.
            seeds: how many the row has, and `of_sgd` SGD's.
        """
        quantile = float(t.ppf((1 + CONFIDENCE) / 2, self.freedom))
        return quantile * self.deviation * ratio * math.sqrt(1 / seeds + 1 / of_sgd)


def pooled_of(rows: Sequence[BySeed]) -> Dict[str, Pooled]:
    """Return how far seeds differ in each score that some rows of one corpus have."""
    names = {name for row in rows for name in row}
    found = {name: Pooled.of(row.get(name, ()) for row in rows) for name in names}
    return {name: pooled for name, pooled in found.items() if pooled}
