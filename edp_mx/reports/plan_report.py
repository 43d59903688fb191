"""The ε of a planned run, and of any by all accountants, as text and as JSON."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from edp_mx.dp.accounting.accountants import ACCOUNTANTS
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import PAPER, say_paper
from edp_mx.dp.accounting.coverage import TAKEN_AS_PUBLIC
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.reports.table import render_table

HEADER = ("accountant", "as published", "holds", "holds if", "a bound on what ran")
NO_BOUND = "NOT a bound"
COUNTED = ("as_published", "holds")  # with z as given and κ = 1; with the effective z


def plan_as_json(said: Guarantee) -> Dict[str, Any]:
    """Return a value for strict JSON: both ε of a plan, and the ε of all accountants."""
    plan, release, z = said.plan, said.release, list(said.effective_noise_multipliers)
    is_known = not plan.awaits_scales  # what depends on α
    return {
        "delta": plan.delta,
        "as_published": said.as_published.to_dict(),
        "holds": {
            **said.holds.to_dict(),
            "assumes": TAKEN_AS_PUBLIC,
            "kappa": release.kappa,
            "effective_noise_multiplier": z if is_known else None,
            "aggregate_noise_stddev": list(release.aggregate_noise_stddev(plan.noise_multiplier)),
            "aggregate_sensitivity": release.aggregate_sensitivity if is_known else None,
        },
        "sampler": {
            "name": release.sampler,
            "sample_rate": release.sample_rate,
            "steps_per_epoch": plan.steps_per_epoch if release.draws.by_chance else None,
        },
        "accountants": {name: counts_as_json(said.by_accountant[name]) for name in COUNTED},
    }


def plan_as_lines(said: Guarantee) -> List[str]:
    """Return text lines: one per number, with a column per way of counting."""
    release, paper, holds = said.release, said.as_published, said.holds
    rows = [
        ("", "as published", "holds"),
        ("rho", *("" if b.rho is None else str(b.rho) for b in (paper, holds))),
        ("epsilon", str(paper.epsilon), str(holds.epsilon)),
        ("kappa", "1", f"{release.kappa:g}"),
    ]
    counts = {name: said.by_accountant[name] for name in COUNTED}
    return [
        f"One {release.record}, delta = {said.plan.delta:g}",
        "",
        *(f"{name:<32}{left:>14}{right:>14}".rstrip() for name, left, right in rows),
        *_release_lines(said),
        "",
        *render_accountants(paper, counts),
        "",
        f"as published: the multiplier as given, kappa 1; {say_paper(paper)}",
        release.draws.how_it_holds,
        f"assumed: {TAKEN_AS_PUBLIC}",
        *(f"infinite because {reason}" for reason in holds.reasons),
    ]


def _release_lines(said: Guarantee) -> List[str]:
    """Describe the noise on the aggregate; what depends on α is unknown while α is."""
    plan, release, z = said.plan, said.release, said.effective_noise_multipliers
    values = {
        f"effective multiplier, {name} epoch": f"{z[epoch]:.6g}" if z else "unknown"
        for name, epoch in (("first", 0), ("last", -1))
        if plan.epochs
    }
    if release.draws.by_chance:
        values["sample rate"] = f"{release.sample_rate:.6g}"
        values["steps"] = str(plan.steps)
    moved = "unknown" if plan.awaits_scales else f"{release.aggregate_sensitivity:.6g}"
    values["sensitivity of the aggregate"] = moved
    lines = [f"{name:<46}{value:>14}" for name, value in values.items()]
    stddevs = release.aggregate_noise_stddev(plan.noise_multiplier)
    noise = ", ".join(f"{stddev:.6g}" for stddev in stddevs)
    return [*lines, f"noise on the aggregate in epoch 1, stddev by layer: {noise}"]


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
