"""Lower bounds on ε from the number of errors that an attack made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Tuple

from scipy.special import ndtri
from scipy.stats import beta

from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.zcdp import log_epsilon_exact


@dataclass(frozen=True)
class ErrorCounts:
    """Numbers of errors of an attack that distinguishes two neighbouring data sets.

    A false positive is "with" said of the world without, in one of `negatives` trials.
    """

    false_positives: int
    negatives: int
    false_negatives: int
    positives: int

    def upper_rates(self, *, significance: float) -> Tuple[float, float]:
        """Upper bounds on FPR and FNR that hold together, each with half of the significance."""
        half = significance / 2
        return (
            upper_rate(self.false_positives, self.negatives, significance=half),
            upper_rate(self.false_negatives, self.positives, significance=half),
        )


def upper_rate(errors: int, trials: int, *, significance: float) -> float:
    """Return the upper bound of Clopper and Pearson (1934) on a rate, given how often it came true.

    It is too small with probability `significance` at most.

    Example:
        >>> round(upper_rate(0, 100, significance=0.025), 6)  # 1 − 0.025^(1/100)
        0.036217
    """
    return float(beta.isf(significance, errors + 1, trials - errors)) if errors < trials else 1.0


def epsilon_from_errors(counts: ErrorCounts, *, delta: float, significance: float) -> float:
    """Return a lower bound on the ε of any mechanism that permits such errors.

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
    """Return a lower bound on the μ of a Gaussian mechanism: Φ⁻¹(1 − FPR) − Φ⁻¹(FNR).

    It holds with probability 1 − significance for any μ-GDP mechanism; that it is Gaussian is taken
    as given when μ becomes ε. 0 where nothing is shown.

    Source: Nasr et al. (2023), "Tight Auditing"; Dong, Roth and Su (2022).
    """
    fpr, fnr = counts.upper_rates(significance=significance)
    return max(0.0, float(-ndtri(fpr) - ndtri(fnr)))


def epsilon_of_mu(mu: float, *, delta: float) -> float:
    """Return the exact ε at δ of a Gaussian mechanism with sensitivity μ standard deviations.

    Example:
        >>> round(epsilon_of_mu(1.0, delta=1e-5), 4)
        4.3772
    """
    if mu == 0:
        return 0.0
    return exp_of(log_epsilon_exact(2 * math.log(mu) - math.log(2), delta))
