"""Report on the ε of a planned run, as text and as JSON."""

from __future__ import annotations

from typing import Any, Dict, List

from edp_mx.dp.accounting.counting import say_paper
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.reports.accountant_table import counts_as_json, render_accountants

COUNTED = ("as_published", "holds")  # with z as given and κ = 1; with the effective z


def plan_as_json(said: Guarantee) -> Dict[str, Any]:
    """Return a value for strict JSON: both ε of a plan, and the ε of all accountants."""
    plan, release = said.plan, said.release
    return {
        "delta": plan.delta,
        "as_published": said.as_published.to_dict(),
        "holds": {
            **said.holds.to_dict(),
            "kappa": release.kappa,
            "effective_noise_multiplier": [
                plan.effective_noise_multiplier_at(epoch) for epoch in range(plan.epochs)
            ],
            "aggregate_noise_stddev": list(release.aggregate_noise_stddev(plan.noise_multiplier)),
            "aggregate_sensitivity": release.aggregate_sensitivity,
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
        *_release_lines(said.plan),
        "",
        *render_accountants(paper, counts),
        "",
        f"as published: the multiplier as given, kappa 1; {say_paper(paper)}",
        release.draws.how_it_holds,
        *(f"infinite because {reason}" for reason in holds.reasons),
    ]


def _release_lines(plan: Plan) -> List[str]:
    """Describe the noise on the aggregate."""
    release, values = plan.released, {}
    if plan.epochs:
        for name, epoch in (("first", 0), ("last", plan.epochs - 1)):
            z = plan.effective_noise_multiplier_at(epoch)
            values[f"effective multiplier, {name} epoch"] = f"{z:.6g}"
    if release.draws.by_chance:
        values["sample rate"] = f"{release.sample_rate:.6g}"
        values["steps"] = str(plan.steps)
    values["sensitivity of the aggregate"] = f"{release.aggregate_sensitivity:.6g}"
    lines = [f"{name:<46}{value:>14}" for name, value in values.items()]
    stddevs = release.aggregate_noise_stddev(plan.noise_multiplier)
    noise = ", ".join(f"{stddev:.6g}" for stddev in stddevs)
    return [*lines, f"noise on the aggregate in epoch 1, stddev by layer: {noise}"]
