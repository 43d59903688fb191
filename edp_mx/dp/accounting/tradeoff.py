"""Trade-off functions: how often a guess of membership can be right, given ε."""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from edp_mx.dp.accounting.choices import check_rate
from edp_mx.dp.accounting.lognumber import LogNumber, exp_of


def accuracy_within(epsilon: LogNumber, delta: float) -> float:
    """Return the largest share of right guesses between two equally likely neighbours, by (ε, δ).

    (e^ε + δ) / (1 + e^ε), which is e^ε / (1 + e^ε) at δ = 0.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 2.1.
    """
    check_rate(delta, "delta")
    odds_against = math.exp(-exp_of(epsilon.log))
    return (1 + delta * odds_against) / (1 + odds_against)


def tpr_within(epsilon: LogNumber, delta: float, *, fpr: float) -> float:
    """Return the largest true positive rate at a false positive rate, by (ε, δ) (the same source).

    min(e^ε FPR + δ, 1 − e^−ε (1 − FPR − δ)), at most 1.
    """
    check_rate(fpr, "fpr", is_open=True)
    check_rate(delta, "delta")
    plain = exp_of(epsilon.log)
    by_alarms = exp_of(math.log(fpr) + plain) + delta
    by_misses = 1 - math.exp(-plain) * (1 - fpr - delta)
    return min(by_alarms, by_misses, 1.0)


def accuracy_gaussian(log_rho: float) -> float:
    """Return the share of right guesses against one Gaussian of zCDP ρ: Φ(μ/2), μ² = 2ρ.

    Source: Dong, Roth and Su (2022), Definition 2.6.
    """
    return float(ndtr(_mu(log_rho) / 2))


def tpr_gaussian(log_rho: float, *, fpr: float) -> float:
    """Return the true positive rate against one Gaussian of zCDP ρ: Φ(Φ⁻¹(FPR) + μ)."""
    check_rate(fpr, "fpr", is_open=True)
    return float(ndtr(ndtri(fpr) + _mu(log_rho)))


def _mu(log_rho: float) -> float:
    """μ of ρ; infinite beyond a double."""
    return exp_of(0.5 * (math.log(2) + log_rho))
