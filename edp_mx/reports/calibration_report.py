"""The noise that a wanted ε asks for, for both variants: as text and as JSON."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Tuple

import numpy as np

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.guarantee import SMALL_LAST_NOISE
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import VARIANTS, Release
from edp_mx.errors import UserError
from edp_mx.reports.table import render_table

HEADER = ("variant", "z0", "z in the last epoch", "epsilon that holds", "epsilon as published")
DIGITS = 6  # of z₀ as text


@dataclass(frozen=True)
class Calibrated:
    """One variant's z₀ and what it gives."""

    noise_multiplier: float
    effective_noise_multiplier: float
    holds: Bound
    as_published: Bound

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "effective_noise_multiplier": self.effective_noise_multiplier,
            "as_published": self.as_published.to_dict(),
            "holds": self.holds.to_dict(),
        }


@dataclass(frozen=True)
class CalibrationReport:
    """z₀ for a target, on the safe side.

    Attributes:
        plan: with the variant that was asked for.
        target_epsilon, delta: what is to hold.
        variants: both, whose noise on the aggregate is the same, and z₀ is not; of DP-SGD its one.
        warnings: what a reader should look at twice.
    """

    plan: Plan
    target_epsilon: float
    delta: float
    variants: Dict[str, Calibrated]
    warnings: Tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, *, target_epsilon: float, delta: float) -> CalibrationReport:
        """Calibrates once, and translates into the other variant's z₀.

        Raises:
            UserError: an impossible target.
        """
        if delta >= 1:
            raise UserError(f"delta is {delta}; it must lie between 0 and 1")
        z, holds = plan.calibrate(target_epsilon=target_epsilon, delta=delta)
        effective = plan.release.effective_noise_multiplier(z)
        found = {}
        for variant in VARIANTS if plan.release.clips == "micro_batch" else ("calibrated",):
            own = z
            if variant != plan.release.variant:
                own = _multiplier_for(effective, replace(plan.release, variant=variant))
            found[variant] = Calibrated(
                noise_multiplier=own,
                effective_noise_multiplier=effective,
                holds=holds,
                as_published=plan.count_as_published(own, delta=delta),
            )
        return cls(plan, target_epsilon, delta, found, _warnings(plan))

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON; at the top the variant that was asked for."""
        variant = self.plan.release.variant
        return {
            "target_epsilon": self.target_epsilon,
            "delta": self.delta,
            "variant": variant,
            "sampler": self.plan.release.sampler,
            **self.variants[variant].to_dict(),
            "variants": {name: found.to_dict() for name, found in self.variants.items()},
            "warnings": list(self.warnings),
        }

    def lines(self) -> List[str]:
        """For a reader; z₀ is rounded up, so that it can be copied."""
        plan, release = self.plan, self.plan.release
        rows = [
            [
                name,
                _rounded_up(found.noise_multiplier),
                f"{plan.decay.noise_multiplier_at(found.noise_multiplier, plan.epochs - 1):.4g}",
                str(found.holds.epsilon),
                str(found.as_published.epsilon),
            ]
            for name, found in sorted(
                self.variants.items(), key=lambda item: item[0] != release.variant
            )
        ]
        own = self.variants[release.variant]
        factor = release.kappa * max(release.layer_scales) * math.sqrt(release.num_workers)
        both, compared = "", []
        if len(self.variants) > 1:
            both = " of both"
            compared = [
                f"published needs kappa max(alpha) sqrt(N) = {factor:.4g} times calibrated's z0 "
                "for the same noise"
            ]
        return [
            f"epsilon {self.target_epsilon:g} at delta {self.delta:.3g}, {plan.epochs} epochs, "
            f"{release.num_workers} workers, sampler {release.sampler}, {release.adjacency}:",
            "",
            *render_table(HEADER, rows).splitlines(),
            "",
            f"effective noise multiplier{both}: {own.effective_noise_multiplier:.6g}, by "
            f"{own.holds.accountant}",
            *compared,
            *(f"note: {warning}" for warning in self.warnings),
        ]


def _multiplier_for(effective: float, release: Release) -> float:
    """z₀ whose effective multiplier is that one, or a rounding above."""
    z = effective / release.effective_noise_multiplier(1.0)
    while release.effective_noise_multiplier(z) < effective:
        z = float(np.nextafter(z, math.inf))
    return z


def _rounded_up(value: float) -> str:
    """With few digits, not below.

    Example:
        >>> _rounded_up(1.23456001)
        '1.23457'
    """
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{DIGITS}g}"


def _warnings(plan: Plan) -> Tuple[str, ...]:
    """A decay that spends nearly everything at the end."""
    fall = -plan.decay.log_factor(max(plan.epochs - 1, 0))
    if fall <= math.log(SMALL_LAST_NOISE):
        return ()
    return (
        f"the noise of the last epoch is {math.exp(min(fall, 700)):.3g} times smaller than that of "
        "the first, so nearly all of epsilon is spent at the end; lower the decay rate",
    )
