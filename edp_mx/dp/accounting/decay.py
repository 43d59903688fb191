"""d(t): how the noise multiplier falls from epoch to epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edp_mx.dp.accounting.choices import check_choice
from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_DECAY

KINDS = ("none", "linear", "exponential")


@dataclass(frozen=True)
class Decay:
    """The noise decay of eDP-SGD, by epoch t from 0: z_t = z₀ d(t).

    Attributes:
        kind: none (d = 1), linear (d = 1 / (1 + τt)) or exponential (d = e^(−τt)).
        rate: τ ≥ 0, per epoch; 0 for none.

    Source: eDP-SGD, "Noise Decay In DP-SGD".
    """

    kind: str = "none"
    rate: float = 0.0

    def __post_init__(self) -> None:
        check_choice("decay kind", self.kind, KINDS)
        if not 0 <= self.rate <= MOST_DECAY:
            raise UserError(
                f"decay rate is {self.rate}; it must be a finite number from 0 to {MOST_DECAY:g}"
            )
        if self.kind == "none" and self.rate != 0:
            raise UserError(
                f"decay rate is {self.rate} but the kind is none; choose linear or exponential, "
                "or leave the rate out"
            )

    def log_factor(self, epoch: int) -> float:
        """Return log d(t), which is finite where d(t) itself would underflow."""
        if self.kind == "linear":
            return -math.log1p(self.rate * epoch)
        return -self.rate * epoch

    def factor(self, epoch: int) -> float:
        """Return d(t): 1 at epoch 0, never above."""
        if self.kind == "linear":
            return 1.0 / (1.0 + self.rate * epoch)
        return math.exp(self.log_factor(epoch))
