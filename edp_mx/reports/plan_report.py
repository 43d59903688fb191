"""What a planned run would cost: as text, and as JSON for another program."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Dict, List

from edp_mx.accounting.accountants import Count
from edp_mx.accounting.bound import Bound
from edp_mx.accounting.coverage import RESOLUTION, VANISHING_NOISE
from edp_mx.accounting.plan import Plan
from edp_mx.reports.accountant_table import counts_as_json, counts_of, render_accountants

PAPERS = {
    "zcdp_paper": "zcdp_paper: epsilon = rho + 2 sqrt(rho ln 1/delta)",
    "paper_rs": "paper_rs: Yu et al. (2019), approximate by their own word",
}
HOW_IT_HOLDS = {
    "shuffle": "holds: for whoever sees every aggregate; exact for shuffled epochs of disjoint "
    "batches",
    "poisson": "holds: for whoever sees every aggregate but not which utterances were drawn",
}


@dataclass(frozen=True)
class PlanReport:
    """Both ε of a plan at one noise multiplier, by all accountants.

    Attributes:
        plan, noise_multiplier, delta: what was asked for.
        paper: ε as the paper counts it.
        holds: ε that holds.
        counts_as_given: all accountants with the multiplier as given and κ = 1.
        counts: all accountants with the effective multiplier.
    """

    plan: Plan
    noise_multiplier: float
    delta: float
    paper: Bound
    holds: Bound
    counts_as_given: List[Count]
    counts: List[Count]

    @classmethod
    def of(cls, plan: Plan, noise_multiplier: float, *, delta: float) -> PlanReport:
        """Counts everything."""
        paper = plan.count_as_published(noise_multiplier, delta=delta)
        given = plan.count_as_given(noise_multiplier, delta=delta)
        holds = plan.count_what_holds(noise_multiplier, delta=delta)
        return cls(
            plan,
            noise_multiplier,
            delta,
            paper,
            holds,
            counts_of(given, plan.composition_as_given(noise_multiplier), delta=delta),
            counts_of(holds, plan.composition(noise_multiplier), delta=delta),
        )

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON."""
        plan, z = self.plan, self.noise_multiplier
        effective = plan.release.effective_noise_multiplier(z)
        return {
            "delta": self.delta,
            "as_published": self.paper.to_dict(),
            "holds": {
                **self.holds.to_dict(),
                "kappa": plan.release.kappa,
                "effective_noise_multiplier": [
                    plan.decay.noise_multiplier_at(effective, epoch) for epoch in range(plan.epochs)
                ],
                "aggregate_noise_stddev": list(plan.release.aggregate_noise_stddev(z)),
                "aggregate_sensitivity": plan.release.aggregate_sensitivity,
            },
            "sampler": {
                "name": plan.release.sampler,
                "sample_rate": plan.sample_rate,
                "steps_per_epoch": plan.steps_per_epoch if plan.is_poisson else None,
            },
            "accountants": {
                "as_published": counts_as_json(self.counts_as_given),
                "holds": counts_as_json(self.counts),
            },
        }

    def lines(self) -> List[str]:
        """The same for a reader: one line a number, one column a way of counting."""
        release, holds = self.plan.release, self.holds
        rows = [
            ("", "as published", "holds"),
            ("rho", *("" if b.rho is None else str(b.rho) for b in (self.paper, holds))),
            ("epsilon", str(self.paper.epsilon), str(holds.epsilon)),
            ("kappa", "1", f"{release.kappa:g}"),
        ]
        lines = [f"One utterance, delta = {self.delta:g}", ""]
        lines += [f"{name:<32}{left:>14}{right:>14}".rstrip() for name, left, right in rows]
        lines += self._release_lines()
        lines += ["", *render_accountants(self.paper, self.counts_as_given, self.counts), ""]
        lines += [
            f"as published: the multiplier as given, kappa 1; {PAPERS[self.paper.accountant]}",
            HOW_IT_HOLDS[release.sampler],
        ]
        lines += [f"infinite because {reason}" for reason in holds.reasons]
        if self.vanishes:
            lines += textwrap.wrap(f"note: a run would report epsilon infinite: {VANISHING_NOISE}")
        return lines

    @property
    def vanishes(self) -> bool:
        """Whether float32 adds no noise in the last epoch, as a run's guarantee judges it."""
        plan = self.plan
        last = plan.decay.noise_multiplier_at(self.noise_multiplier, max(plan.epochs - 1, 0))
        return self.noise_multiplier > 0 and plan.release.relative_noise(last) < RESOLUTION

    def _release_lines(self) -> List[str]:
        """What is on the aggregate."""
        plan, z = self.plan, self.noise_multiplier
        release, lines = plan.release, []
        if plan.epochs:
            first = release.effective_noise_multiplier(z)
            last = plan.decay.noise_multiplier_at(first, plan.epochs - 1)
            lines.append(f"{'effective multiplier, first epoch':<46}{first:>14.6g}")
            lines.append(f"{'effective multiplier, last epoch':<46}{last:>14.6g}")
        if plan.is_poisson:
            lines.append(f"{'sample rate':<46}{plan.sample_rate:>14.6g}")
            lines.append(f"{'steps':<46}{plan.epochs * plan.steps_per_epoch:>14}")
        lines.append(f"{'sensitivity of the aggregate':<46}{release.aggregate_sensitivity:>14.6g}")
        noise = ", ".join(f"{stddev:.6g}" for stddev in release.aggregate_noise_stddev(z))
        return [*lines, f"noise on the aggregate at epoch 0, stddev by layer: {noise}"]
