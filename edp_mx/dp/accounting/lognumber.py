"""Non-negative numbers too large for a double, kept as their natural logarithm."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Mapping, Optional

LARGEST_LOG = math.log(sys.float_info.max)
NO_PROTECTION = 100.0  # an ε from here on limits nothing that anybody could want to find out
_WORDS = ((1e12, "trillion", "tn"), (1e9, "billion", "bn"), (1e6, "million", "mn"))
_LARGEST_IN_WORDS = 1e15


@dataclass(frozen=True)
class LogNumber:
    """A number from 0 to ∞, for ρ and ε that reach 10^400, kept as its natural logarithm."""

    log: float

    def __post_init__(self) -> None:
        if math.isnan(self.log):
            raise ValueError("a LogNumber cannot hold NaN")

    @property
    def is_infinite(self) -> bool:
        """Whether it is ∞ itself, not a number that only overflows a double."""
        return self.log == math.inf

    @property
    def value(self) -> Optional[float]:
        """The plain number, or None where a double would overflow (and for ∞)."""
        return math.exp(self.log) if self.log <= LARGEST_LOG else None

    @property
    def log10(self) -> Optional[float]:
        """Its decimal logarithm, or None for 0 and ∞."""
        return self.log / math.log(10) if math.isfinite(self.log) else None

    @classmethod
    def from_dict(cls, bound: Mapping[str, Any]) -> LogNumber:
        """Read the ε of a `Bound.to_dict`: ∞ where both it and its logarithm are null."""
        if bound["epsilon"] is not None:
            return cls(log_of(bound["epsilon"]))
        log10 = bound["log10_epsilon"]
        return cls(math.inf if log10 is None else log10 * math.log(10))

    def __str__(self) -> str:
        """Return it with six digits or as a power of ten, to be compared with other programs."""
        if self.is_infinite:
            return "infinite"
        if self.value is None or self.value >= 1e6:
            return f"10^{self.log10:.3f}"
        return f"{self.value:.6g}"

    def short(self, *, narrow: bool = False) -> str:
        """Return it for people with two or three digits; `narrow` for the cell of a table.

        Example:
            >>> epsilons = map(math.log, (7.99934, 52345, 2.2e6, 1e20, math.inf))
            >>> list(LogNumber(each).short() for each in epsilons)
            ['8', '52,300', '2.2 million', '10^20.0', '∞']
            >>> LogNumber(math.log(2.2e6)).short(narrow=True)
            '2.2 mn'
        """
        if self.is_infinite:
            return "∞"
        if self.value is None or self.value >= _LARGEST_IN_WORDS:
            return f"10^{self.log10:.1f}"
        rounded = float(f"{self.value:.{3 if self.value < 1e6 else 2}g}")
        for size, word, symbol in _WORDS:
            if rounded >= size:
                return f"{rounded / size:g} {symbol if narrow else word}"
        return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:.3g}"

    def in_words(self) -> str:
        """Return it as the ε of a sentence: how large it is, and whether it protects anybody.

        Example:
            >>> epsilons = map(math.log, (7.99934, 2.2e6, math.inf))
            >>> list(LogNumber(each).in_words() for each in epsilons)
            ['7.99934', '2.2 million (no protection; 10^6.3)', 'infinite']
        """
        if self.is_infinite or (self.value is not None and self.value < NO_PROTECTION):
            return str(self)
        power = "" if self.value is not None and self.value < 1e6 else f"; 10^{self.log10:.1f}"
        return f"{self.short()} (no protection{power})"


def log_of(value: float) -> float:
    """Return log(value), with −inf for 0 and below; refuse NaN."""
    if math.isnan(value):
        raise ValueError("NaN has no logarithm")
    return math.log(value) if value > 0 else -math.inf


def exp_of(log: float) -> float:
    """Return exp(log), with inf in place of an overflow; refuse NaN."""
    if math.isnan(log):
        raise ValueError("NaN is no logarithm")
    return math.exp(log) if log <= LARGEST_LOG else math.inf
