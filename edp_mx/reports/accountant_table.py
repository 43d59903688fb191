"""Table of ε by all accountants, as published and as it holds."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from edp_mx.dp.accounting.accountants import ACCOUNTANTS
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import PAPER
from edp_mx.reports.table import render_table

HEADER = ("accountant", "as published", "holds", "holds if", "a bound on what ran")
NO_BOUND = "NOT a bound"


def counts_as_json(counts: Sequence[Bound]) -> List[Dict[str, Any]]:
    """Return a value for strict JSON; ∞ is null in both numbers."""
    return [
        {
            "accountant": count.accountant,
            "epsilon": count.epsilon.value,
            "log10_epsilon": count.epsilon.log10,
            "is_bound": ACCOUNTANTS[count.accountant].is_bound,
        }
        for count in counts
    ]


def render_accountants(paper: Bound, counts: Mapping[str, Sequence[Bound]]) -> List[str]:
    """Return a line per accountant, the one of the paper first, and a column per way of counting.

    Args:
        counts: as published, that hold, and perhaps on conditions: `Guarantee.by_accountant`.
    """
    sides = [{each.accountant: each.epsilon for each in side} for side in counts.values()]
    header = [*HEADER[: len(sides) + 1], HEADER[-1]]
    rows = []
    if paper.accountant not in ACCOUNTANTS:  # else it has a line below
        rows.append([PAPER, str(paper.epsilon), *[""] * (len(sides) - 1), NO_BOUND])
    for name, accountant in ACCOUNTANTS.items():
        if any(name in side for side in sides):
            holds_too = accountant.is_bound and name in sides[1]
            values = [str(side.get(name, "")) for side in sides]
            rows.append([name, *values, "yes" if holds_too else NO_BOUND])
    return render_table(header, rows).splitlines()
