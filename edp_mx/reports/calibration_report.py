"""Noise multiplier for a target ε, for both variants, as text and as JSON."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace
from typing import Any, Dict, List

import numpy as np

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.choices import VARIANTS
from edp_mx.dp.accounting.counting import count_as_published, count_what_holds
from edp_mx.dp.accounting.coverage import TAKEN_AS_PUBLIC
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.remarks import warnings_of
from edp_mx.reports.table import render_table
from edp_mx.runtime.console_text import count_of

HEADER = ("variant", "z0", "z, last epoch", "epsilon that holds", "as published")
DIGITS = 6  # of z₀ as text


@dataclass(frozen=True)
class CalibrationReport:
    """The z₀ of a target ε.

    Attributes:
        plan: with the requested variant.
        holds: the ε that holds, for each variant.
        variants: plans with equal noise on the aggregate and different z₀; DP-SGD has one.
    """

    plan: Plan
    target_epsilon: float
    holds: Bound
    variants: Dict[str, Plan]

    @classmethod
    def of(cls, plan: Plan, *, target_epsilon: float) -> CalibrationReport:
        """Convert the z₀ of a plan that meets its target to the other variant."""
        release = plan.released
        variants = {}
        for variant in VARIANTS if release.clips.is_mean else ("calibrated",):
            other = replace(release, variant=variant)
            z = plan.noise_multiplier
            if variant != release.variant:
                z = _multiplier_for(release.effective_noise_multiplier(z), other)
            variants[variant] = replace(plan, release=other, noise_multiplier=z)
        holds = count_what_holds(plan, plan.entries())
        return cls(plan, target_epsilon, holds, variants)

    @property
    def effective_noise_multiplier(self) -> float:
        """The same of all variants."""
        return self.plan.effective_noise_multiplier_at(0)

    def to_dict(self) -> Dict[str, Any]:
        """Return a value for strict JSON; the requested variant at the top."""
        variants = {
            name: {
                "noise_multiplier": plan.noise_multiplier,
                "effective_noise_multiplier": self.effective_noise_multiplier,
                "as_published": count_as_published(plan, plan.entries()).to_dict(),
                "holds": self.holds.to_dict(),
            }
            for name, plan in self.variants.items()
        }
        variant = self.plan.released.variant
        return {
            "target_epsilon": self.target_epsilon,
            "delta": self.plan.delta,
            "variant": variant,
            "sampler": self.plan.released.sampler,
            **variants[variant],
            "assumes": TAKEN_AS_PUBLIC,
            "variants": variants,
            "warnings": list(warnings_of(self.plan)),
        }

    def lines(self) -> List[str]:
        """Return text lines, the requested variant first; z₀ is rounded up to be copied."""
        plan, release = self.plan, self.plan.released
        rows = [
            [
                name,
                rounded_up(own.noise_multiplier),
                f"{own.noise_multiplier_at(plan.epochs - 1):.4g}",
                str(self.holds.epsilon),
                str(count_as_published(own, own.entries()).epsilon),
            ]
            for name, own in sorted(self.variants.items(), key=lambda v: v[0] != release.variant)
        ]
        both, compared = "", []
        if len(self.variants) > 1:
            factor = 1 / replace(release, variant="published").effective_noise_multiplier(1.0)
            both = " of both"
            compared = [
                f"for the same noise published needs kappa max(alpha) sqrt(N) = {factor:.4g} times "
                "the z0 of calibrated"
            ]
        return [
            f"epsilon {self.target_epsilon:g} at delta {plan.delta:.3g}, "
            f"{count_of(plan.epochs, 'epoch')}, {count_of(release.num_workers, 'worker')}, "
            f"sampler {release.sampler}, {release.adjacency}:",
            "",
            *render_table(HEADER, rows).splitlines(),
            "",
            f"effective noise multiplier{both}: {self.effective_noise_multiplier:.6g}, by "
            f"{self.holds.accountant}",
            *compared,
            f"assumed: {TAKEN_AS_PUBLIC}",
            *(f"note: {warning}" for warning in warnings_of(plan)),
        ]


def _multiplier_for(effective: float, release: Release) -> float:
    """Return z₀ with that effective multiplier, or the next float above."""
    z = effective / release.effective_noise_multiplier(1.0)
    while release.effective_noise_multiplier(z) < effective:
        z = float(np.nextafter(z, math.inf))
    return z


def rounded_up(value: float) -> str:
    """Return a number with few digits, rounded up.

    Example:
        >>> rounded_up(1.23456001)
        '1.23457'
    """
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{DIGITS}g}"
