"""Upper bounds on the success of membership inference, from the accounting of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Dict, Tuple

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.counting import count_what_holds
from edp_mx.accounting.guarantee import Guarantee
from edp_mx.accounting.tradeoff import (
    accuracy_gaussian,
    accuracy_within,
    tpr_gaussian,
    tpr_within,
)

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
    """Compute what (ε, δ) and the mechanism permit at most.

    Guarantee: the bounds hold for every attacker; for shuffled epochs the second ones are exact.
    """
    delta = spent.plan.delta
    accuracy = accuracy_within(bound.epsilon, delta)
    tprs = {fpr: tpr_within(bound.epsilon, delta, fpr=fpr) for fpr in FPRS}
    if bound.accountant == "rf_exact" and bound.rho is not None:
        log_rho = bound.rho.log
        return Limits(
            (accuracy, accuracy_gaussian(log_rho)),
            {fpr: (tpr, tpr_gaussian(log_rho, fpr=fpr)) for fpr, tpr in tprs.items()},
            "all epochs together are one Gaussian mechanism, whose limits are exact",
        )
    best_accuracy, best = accuracy, dict(tprs)
    if bound.epsilon.log <= LARGEST:
        for other in DELTAS:
            at_other = replace(spent.plan, delta=other)
            epsilon = count_what_holds(at_other, spent.entries).epsilon
            best_accuracy = min(best_accuracy, accuracy_within(epsilon, other))
            best = {f: min(t, tpr_within(epsilon, other, fpr=f)) for f, t in best.items()}
    return Limits(
        (accuracy, best_accuracy),
        {fpr: (tpr, best[fpr]) for fpr, tpr in tprs.items()},
        f"the best bound of epsilon at {1 + len(DELTAS)} values of delta",
    )
