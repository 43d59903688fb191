"""How often a guess of membership can be right: upper bounds, from the accounting of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Dict, List, Tuple

from scipy.special import ndtr, ndtri

from edp_mx.dp.accounting.accountants import is_gaussian
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.choices import check_rate
from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.lognumber import LogNumber, exp_of

FPRS = (0.01, 0.001)
# Further δ at which ε is computed for Poisson steps; each takes up to two seconds.
DELTAS = (0.3, 0.1, 0.03, 0.01, 0.001)
LARGEST = math.log(100.0)  # log ε above which other δ do not help


@dataclass(frozen=True)
class Limits:
    """Upper bounds for an attacker: from one (ε, δ), and from all that is known."""

    accuracy: Tuple[float, float]  # share of right guesses at even odds
    by_fpr: Dict[float, Tuple[float, float]]  # rate of false alarms -> share of members found
    source: str  # of the second bounds, in words


def limits_of(bound: Bound, spent: Guarantee) -> Limits:
    """Compute the most that (ε, δ) and the mechanism permit.

    Guarantee: the bounds hold for every attacker; for shuffled epochs the second ones are exact.
    """
    first = best = _within(bound.epsilon, spent.plan.delta)
    source = f"the best bound of epsilon at {1 + len(DELTAS)} values of delta"
    if is_gaussian(bound) and bound.rho is not None:
        log_rho = bound.rho.log
        best = [accuracy_gaussian(log_rho), *(tpr_gaussian(log_rho, fpr=fpr) for fpr in FPRS)]
        source = "all epochs together are one Gaussian mechanism, whose limits are exact"
    elif bound.epsilon.log <= LARGEST:
        for delta in DELTAS:
            at_delta = replace(spent.plan, delta=delta)
            epsilon = count_what_holds(at_delta, spent.entries).epsilon
            best = list(map(min, best, _within(epsilon, delta)))
    accuracy, *tprs = zip(first, best)
    return Limits(accuracy, dict(zip(FPRS, tprs)), source)


def _within(epsilon: LogNumber, delta: float) -> List[float]:
    """Return the limits of one (ε, δ): the accuracy, and the share found at each of `FPRS`."""
    return [accuracy_within(epsilon, delta), *(tpr_within(epsilon, delta, fpr=f) for f in FPRS)]


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
