"""Non-negative numbers too large for a double, kept as their natural logarithm."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Optional

LARGEST_LOG = math.log(sys.float_info.max)


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

    def __str__(self) -> str:
        if self.is_infinite:
            return "infinite"
        if self.value is None or self.value >= 1e6:
            return f"10^{self.log10:.3f}"
        return f"{self.value:.6g}"


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
