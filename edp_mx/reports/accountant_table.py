"""One ε by all accountants: as published beside what holds."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from edp_mx.accounting.accountants import ACCOUNTANTS, Count, count_with
from edp_mx.accounting.bound import INFINITE, Bound
from edp_mx.accounting.events import Composition
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.reports.table import render_table

PAPER = "zcdp_paper"
HEADER = ("accountant", "as published", "holds", "a bound on what ran")
NO_BOUND = "NOT a bound"


def counts_of(bound: Bound, composition: Composition, *, delta: float) -> List[Count]:
    """What `accountants.count_with_all` says, without counting again what `bound` holds already.

    Args:
        bound: by `count_what_holds` or `count_released`, or unbounded, which all then are.
        composition: what `bound` was counted for.

    Edge cases: shuffled epochs are read from `bound` alone, which may be in closed form where
        single multipliers underflow.
    """
    known: Dict[str, Optional[LogNumber]]
    is_poisson = any(event.sampler == "poisson" for event in composition.events)
    if is_poisson:
        known = {"poisson_pld": bound.epsilon, "poisson_rdp": bound.epsilon_renyi}
    else:
        known = {
            "rf_exact": bound.epsilon,
            "rf_renyi": bound.epsilon_renyi,
            "rf_zcdp": bound.epsilon_zcdp,
        }
    if bound.accountant == "none":
        known = dict.fromkeys(known, INFINITE)
    counts = [Count(name, epsilon, True) for name, epsilon in known.items() if epsilon]
    if is_poisson:
        counts += [
            count_with(name, composition, delta=delta)
            for name, (sampler, is_bound, _) in ACCOUNTANTS.items()
            if sampler == "poisson" and not is_bound
        ]
    return counts


def counts_as_json(counts: Sequence[Count]) -> List[Dict[str, Any]]:
    """Strict JSON; ∞ is null in both numbers."""
    return [
        {
            "accountant": count.accountant,
            "epsilon": count.epsilon.value,
            "log10_epsilon": count.epsilon.log10,
            "is_bound": count.is_bound,
        }
        for count in counts
    ]


def render_accountants(
    paper: Bound, published: Sequence[Count], holds: Sequence[Count]
) -> List[str]:
    """A line for each accountant; the paper's own first.

    Args:
        paper: ε as the paper counts it.
        published: all counts with the multiplier as given, κ = 1.
        holds: the same with the effective multiplier.
    """
    left = {count.accountant: count.epsilon for count in published}
    right = {count.accountant: count.epsilon for count in holds}
    rows = []
    if paper.accountant not in ACCOUNTANTS:  # else it has a line below
        rows.append([PAPER, str(paper.epsilon), "", NO_BOUND])
    for name, (_, is_bound, _) in ACCOUNTANTS.items():
        if name in left or name in right:
            holds_too = is_bound and name in right
            values = [str(side.get(name, "")) for side in (left, right)]
            rows.append([name, *values, "yes" if holds_too else NO_BOUND])
    return render_table(HEADER, rows).splitlines()
