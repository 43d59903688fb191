"""Table of ε by all accountants, as published and as it holds."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

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


def render_accountants(
    paper: Bound,
    as_published: Sequence[Bound],
    holds: Sequence[Bound],
    holds_if: Sequence[Bound] = (),
) -> List[str]:
    """Return a line per accountant, the one of the paper first.

    Args:
        holds_if: under conditions; a column of its own, where there are any.
    """
    sides = [
        {count.accountant: count.epsilon for count in counts}
        for counts in (as_published, holds, holds_if)[: 3 if holds_if else 2]
    ]
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
