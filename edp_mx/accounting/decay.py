"""d(t): how the noise multiplier falls from epoch to epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from edp_mx.accounting.lognumber import log_of
from edp_mx.errors import UserError

KINDS = ("none", "linear", "exponential")


@dataclass(frozen=True)
class Decay:
    """The noise decay of eDP-SGD, by epoch t from 0: z_t = z₀ d(t).

    Attributes:
        kind: none (d = 1), linear (d = 1 / (1 + τt)) or exponential (d = e^(−τt)).
        rate: τ ≥ 0, one an epoch; 0 for none.

    Raises:
        UserError: an unknown kind, or a rate that is negative, not finite, or given with none.

    Source: eDP-SGD, "Noise Decay In DP-SGD"; what Yu et al. (2019) call time-based and
    exponential decay.

    Example:
        >>> Decay("linear", 0.5).noise_multiplier_at(3.0, epoch=1)
        2.0
    """

    kind: str = "none"
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"decay kind is {self.kind!r}; choose one of {', '.join(KINDS)}")
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise UserError(f"decay rate is {self.rate}; it must be a finite number, 0 or more")
        if self.kind == "none" and self.rate != 0:
            raise UserError(
                f"decay rate is {self.rate} but the kind is none; choose linear or exponential, "
                "or leave the rate out"
            )

    def log_factor(self, epoch: int) -> float:
        """log d(t): finite where d(t) itself would underflow."""
        if self.kind == "linear":
            return -math.log1p(self.rate * epoch)
        return -self.rate * epoch

    def factor(self, epoch: int) -> float:
        """d(t); 1 at epoch 0, never above."""
        if self.kind == "linear":
            return 1.0 / (1.0 + self.rate * epoch)
        return math.exp(self.log_factor(epoch))

    def noise_multiplier_at(self, noise_multiplier: float, epoch: int) -> float:
        """z_t = z₀ d(t)."""
        return noise_multiplier * self.factor(epoch)

    def log_inverse_square_sum(self, epochs: int, first_epoch: int = 0) -> float:
        """log Σ d(t)⁻² over `epochs` epochs, in closed form: T, a cubic in T, a geometric series.

        A decay that starts at t₀ is a decay of the same kind from d(t₀) on: linear with rate
        τ / (1 + τt₀), exponential with rate τ.

        Args:
            epochs: T; 0 gives −inf.
            first_epoch: t₀, the first epoch counted.

        Edge cases: exact for tiny τ, and does not overflow where e^(2τT) does (τT > 354).

        Source: docs/privacy.md, section 4.
        """
        if epochs <= 0:
            return -math.inf
        start = -2.0 * self.log_factor(first_epoch)
        if self.kind == "exponential" and self.rate > 0:
            return start + _log_expm1(2 * self.rate * epochs) - _log_expm1(2 * self.rate)
        rate = self.rate / (1.0 + self.rate * first_epoch)
        pairs = epochs * (epochs - 1)  # 2 Σ t
        squares = pairs * (2 * epochs - 1) / 6  # Σ t²
        terms = [  # Σ (1 + τt)² = T + τ · 2Σt + τ² · Σt²
            math.log(epochs),
            log_of(rate) + log_of(pairs),
            2 * log_of(rate) + log_of(squares),
        ]
        return start + float(np.logaddexp.reduce(terms))


def _log_expm1(x: float) -> float:
    """log(eˣ − 1) for x > 0 without overflow."""
    return x + math.log(-math.expm1(-x))
