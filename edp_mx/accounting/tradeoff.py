"""Trade-off functions: how often a guess of membership can be right, given ε."""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from edp_mx.accounting.lognumber import LogNumber, exp_of
from edp_mx.errors import UserError


def accuracy_within(epsilon: LogNumber, delta: float) -> float:
    """Return the largest share of right guesses between two equally likely neighbours, by (ε, δ).

    (e^ε + δ) / (1 + e^ε), which is e^ε / (1 + e^ε) at δ = 0.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 2.1.
    """
    _check_delta(delta)
    odds_against = math.exp(-_plain(epsilon))
    return (1 + delta * odds_against) / (1 + odds_against)


def tpr_within(epsilon: LogNumber, delta: float, *, fpr: float) -> float:
    """Return the largest true positive rate at a false positive rate, by (ε, δ).

    min(e^ε FPR + δ, 1 − e^−ε (1 − FPR − δ)), at most 1.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 2.1.
    """
    _check_rate(fpr)
    _check_delta(delta)
    plain = _plain(epsilon)
    by_alarms = exp_of(math.log(fpr) + plain) + delta
    by_misses = 1 - math.exp(-plain) * (1 - fpr - delta)
    return min(by_alarms, by_misses, 1.0)


def accuracy_gaussian(log_rho: float) -> float:
    """Return the share of right guesses against one Gaussian of zCDP ρ: Φ(μ/2), μ² = 2ρ.

    Source: Dong, Roth and Su (2022), Definition 2.6.
    """
    return float(ndtr(_mu(log_rho) / 2))


def tpr_gaussian(log_rho: float, *, fpr: float) -> float:
    """Return the true positive rate against one Gaussian of zCDP ρ: Φ(Φ⁻¹(FPR) + μ).

    Source: Dong, Roth and Su (2022), Equation 6.
    """
    _check_rate(fpr)
    return float(ndtr(ndtri(fpr) + _mu(log_rho)))


def _mu(log_rho: float) -> float:
    """μ of ρ; infinite beyond a double."""
    return exp_of(0.5 * (math.log(2) + log_rho))


def _plain(epsilon: LogNumber) -> float:
    """ε itself; infinite beyond a double."""
    return exp_of(epsilon.log)


def _check_rate(fpr: float) -> None:
    if not 0 < fpr < 1:
        raise UserError(f"fpr is {fpr}; it must lie between 0 and 1")


def _check_delta(delta: float) -> None:
    if not 0 <= delta <= 1:
        raise UserError(f"delta is {delta}; it must lie between 0 and 1")
