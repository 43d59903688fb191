"""Report on the ε of a planned run, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, List

from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.counting import (
    counts_as_published,
    counts_of_what_holds,
    say_paper,
)
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.reports.accountant_table import counts_as_json, render_accountants


@dataclass(frozen=True)
class PlanReport:
    """Both ε of a plan, and the ε of all accountants.

    Attributes:
        paper: ε by the accounting of the paper.
        counts_as_given: with the multiplier as given and κ = 1.
        counts: with the effective multiplier.
    """

    plan: Plan
    paper: Bound
    holds: Bound
    counts_as_given: List[Bound]
    counts: List[Bound]

    @classmethod
    def of(cls, plan: Plan) -> PlanReport:
        """Count the ε of a plan by all accountants."""
        entries, said = plan.entries(), guarantee(plan)
        counts = counts_of_what_holds(plan, entries)
        if said.holds.reasons:
            counts = [replace(unbounded(), accountant=count.accountant) for count in counts]
        return cls(plan, said.as_published, said.holds, counts_as_published(plan, entries), counts)

    @property
    def release(self) -> Release:
        """The release of a step."""
        assert self.plan.release is not None
        return self.plan.release

    def to_dict(self) -> Dict[str, Any]:
        """Return a value for strict JSON."""
        plan, release = self.plan, self.release
        return {
            "delta": plan.delta,
            "as_published": self.paper.to_dict(),
            "holds": {
                **self.holds.to_dict(),
                "kappa": release.kappa,
                "effective_noise_multiplier": [
                    release.effective_noise_multiplier(plan.noise_multiplier_at(epoch))
                    for epoch in range(plan.epochs)
                ],
                "aggregate_noise_stddev": list(
                    release.aggregate_noise_stddev(plan.noise_multiplier)
                ),
                "aggregate_sensitivity": release.aggregate_sensitivity,
            },
            "sampler": {
                "name": release.sampler,
                "sample_rate": release.sample_rate,
                "steps_per_epoch": plan.steps_per_epoch if release.draws.by_chance else None,
            },
            "accountants": {
                "as_published": counts_as_json(self.counts_as_given),
                "holds": counts_as_json(self.counts),
            },
        }

    def lines(self) -> List[str]:
        """Return text lines: one per number, with a column per way of counting."""
        release, holds = self.release, self.holds
        rows = [
            ("", "as published", "holds"),
            ("rho", *("" if b.rho is None else str(b.rho) for b in (self.paper, holds))),
            ("epsilon", str(self.paper.epsilon), str(holds.epsilon)),
            ("kappa", "1", f"{release.kappa:g}"),
        ]
        lines = [f"One {release.record}, delta = {self.plan.delta:g}", ""]
        lines += [f"{name:<32}{left:>14}{right:>14}".rstrip() for name, left, right in rows]
        lines += self._release_lines()
        lines += ["", *render_accountants(self.paper, self.counts_as_given, self.counts), ""]
        lines += [
            f"as published: the multiplier as given, kappa 1; {say_paper(self.paper)}",
            release.draws.how_it_holds,
        ]
        lines += [f"infinite because {reason}" for reason in holds.reasons]
        return lines

    def _release_lines(self) -> List[str]:
        """Describe the noise on the aggregate."""
        plan, release = self.plan, self.release
        values = {}
        if plan.epochs:
            for name, epoch in (("first", 0), ("last", plan.epochs - 1)):
                z = release.effective_noise_multiplier(plan.noise_multiplier_at(epoch))
                values[f"effective multiplier, {name} epoch"] = f"{z:.6g}"
        if release.draws.by_chance:
            values["sample rate"] = f"{release.sample_rate:.6g}"
            values["steps"] = str(plan.steps)
        values["sensitivity of the aggregate"] = f"{release.aggregate_sensitivity:.6g}"
        lines = [f"{name:<46}{value:>14}" for name, value in values.items()]
        stddevs = release.aggregate_noise_stddev(plan.noise_multiplier)
        noise = ", ".join(f"{stddev:.6g}" for stddev in stddevs)
        return [*lines, f"noise on the aggregate in epoch 1, stddev by layer: {noise}"]
