"""What an attack that was tried so many times proves about ε, at a stated confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Tuple

from scipy.special import ndtri
from scipy.stats import beta

from edp_mx.accounting.lognumber import exp_of
from edp_mx.accounting.zcdp import log_epsilon_exact


@dataclass(frozen=True)
class ErrorCounts:
    """How often an attack erred when it told two neighbouring data sets apart.

    Attributes:
        false_positives: "in" said of the world without, out of `negatives` trials.
        false_negatives: "out" said of the world with, out of `positives` trials.
    """

    false_positives: int
    negatives: int
    false_negatives: int
    positives: int

    def __post_init__(self) -> None:
        for errors, trials in (
            (self.false_positives, self.negatives),
            (self.false_negatives, self.positives),
        ):
            if not 0 <= errors <= trials or trials == 0:
                raise ValueError(f"{errors} errors in {trials} trials")

    def upper_rates(self, *, significance: float) -> Tuple[float, float]:
        """Bounds on FPR and FNR that hold together, each with half of the significance."""
        return (
            clopper_pearson(self.false_positives, self.negatives, significance=significance)[1],
            clopper_pearson(self.false_negatives, self.positives, significance=significance)[1],
        )


def clopper_pearson(successes: int, trials: int, *, significance: float) -> Tuple[float, float]:
    """The exact two-sided interval of a probability.

    Args:
        significance: the chance that the interval misses, half of it on each side.

    Source: Clopper and Pearson (1934).

    Example:
        >>> low, high = clopper_pearson(0, 100, significance=0.05)
        >>> low, round(high, 6)  # 1 − 0.025^(1/100)
        (0.0, 0.036217)
    """
    low = beta.ppf(significance / 2, successes, trials - successes + 1) if successes else 0.0
    high = (
        beta.isf(significance / 2, successes + 1, trials - successes) if successes < trials else 1.0
    )
    return float(low), float(high)


def epsilon_from_errors(counts: ErrorCounts, *, delta: float, significance: float) -> float:
    """ε that any mechanism with such errors has at least.

    (ε, δ) privacy means TPR ≤ e^ε FPR + δ and TNR ≤ e^ε FNR + δ for every attack.

    Returns:
        The bound, which holds with probability 1 − significance; 0 where nothing is shown.

    Guarantee: no assumption on the mechanism; never above ln(trials / 3) or so.

    Source: Kairouz, Oh and Viswanath (2015); Jagielski, Ullman and Oprea (2020).
    """
    fpr, fnr = counts.upper_rates(significance=significance)
    ratios = ((1 - fnr - delta) / fpr, (1 - fpr - delta) / fnr)
    return math.log(max(1.0, *ratios))


def mu_from_errors(counts: ErrorCounts, *, significance: float) -> float:
    """μ that a Gaussian mechanism with such errors has at least: Φ⁻¹(1 − FPR) − Φ⁻¹(FNR).

    Returns:
        The bound, which holds with probability 1 − significance; 0 where nothing is shown.

    Guarantee: any μ-GDP mechanism; that it is Gaussian is taken as given when μ becomes ε.

    Source: Nasr et al. (2023), "Tight Auditing"; Dong, Roth and Su (2022).
    """
    fpr, fnr = counts.upper_rates(significance=significance)
    return max(0.0, float(-ndtri(fpr) - ndtri(fnr)))


def epsilon_of_mu(mu: float, *, delta: float) -> float:
    """ε at δ of a Gaussian mechanism whose sensitivity is μ standard deviations; exact.

    Example:
        >>> round(epsilon_of_mu(1.0, delta=1e-5), 4)
        4.3772
    """
    if mu == 0:
        return 0.0
    return exp_of(log_epsilon_exact(2 * math.log(mu) - math.log(2), delta))
