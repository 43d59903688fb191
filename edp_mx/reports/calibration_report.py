"""Noise multiplier for a target ε, for both variants, as text and as JSON."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Tuple

import numpy as np

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.choices import VARIANTS
from edp_mx.accounting.counting import count_as_published, count_what_holds
from edp_mx.accounting.guarantee import SMALL_LAST_NOISE
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.accounting.target import calibrated
from edp_mx.errors import UserError
from edp_mx.reports.table import render_table

HEADER = ("variant", "z0", "z in the last epoch", "epsilon that holds", "epsilon as published")
DIGITS = 6  # of z₀ as text


@dataclass(frozen=True)
class Calibrated:
    """z₀ of one variant and its ε."""

    noise_multiplier: float
    effective_noise_multiplier: float
    holds: Bound
    as_published: Bound

    def to_dict(self) -> Dict[str, Any]:
        """Return a value for strict JSON."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "effective_noise_multiplier": self.effective_noise_multiplier,
            "as_published": self.as_published.to_dict(),
            "holds": self.holds.to_dict(),
        }


@dataclass(frozen=True)
class CalibrationReport:
    """z₀ for a target, rounded up.

    Attributes:
        plan: with the requested variant.
        target_epsilon: the ε to hold, at the δ of the plan.
        variants: both, with equal noise on the aggregate and different z₀; DP-SGD has one.
        warnings: for the reader.
    """

    plan: Plan
    target_epsilon: float
    variants: Dict[str, Calibrated]
    warnings: Tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan, *, target_epsilon: float) -> CalibrationReport:
        """Calibrate once, and convert z₀ to the other variant.

        Raises:
            UserError: the target is impossible.
        """
        if plan.delta >= 1:
            raise UserError(f"delta is {plan.delta}; it must lie between 0 and 1")
        found = calibrated(plan, target_epsilon=target_epsilon)
        release = found.release
        assert release is not None
        effective = release.effective_noise_multiplier(found.noise_multiplier)
        holds = count_what_holds(found, found.entries())
        variants = {}
        for variant in VARIANTS if release.unit == "micro_batch" else ("calibrated",):
            own = found
            if variant != release.variant:
                other = replace(release, variant=variant)
                z = _multiplier_for(effective, other)
                own = replace(found, release=other, noise_multiplier=z)
            variants[variant] = Calibrated(
                noise_multiplier=own.noise_multiplier,
                effective_noise_multiplier=effective,
                holds=holds,
                as_published=count_as_published(own, own.entries()),
            )
        return cls(found, target_epsilon, variants, _warnings(found))

    @property
    def release(self) -> Release:
        """What a step releases."""
        assert self.plan.release is not None
        return self.plan.release

    def to_dict(self) -> Dict[str, Any]:
        """Return a value for strict JSON; the requested variant at the top."""
        variant = self.release.variant
        return {
            "target_epsilon": self.target_epsilon,
            "delta": self.plan.delta,
            "variant": variant,
            "sampler": self.release.sampler,
            **self.variants[variant].to_dict(),
            "variants": {name: found.to_dict() for name, found in self.variants.items()},
            "warnings": list(self.warnings),
        }

    def lines(self) -> List[str]:
        """Return text lines; z₀ is rounded up, so that it can be copied."""
        plan, release = self.plan, self.release
        rows = [
            [
                name,
                _rounded_up(found.noise_multiplier),
                f"{plan.with_noise_multiplier(z).noise_multiplier_at(plan.epochs - 1):.4g}",
                str(found.holds.epsilon),
                str(found.as_published.epsilon),
            ]
            for name, found in sorted(
                self.variants.items(), key=lambda item: item[0] != release.variant
            )
            for z in [found.noise_multiplier]
        ]
        own = self.variants[release.variant]
        both, compared = "", []
        if len(self.variants) > 1:
            factor = 1 / replace(release, variant="published").effective_noise_multiplier(1.0)
            both = " of both"
            compared = [
                f"for the same noise published needs kappa max(alpha) sqrt(N) = {factor:.4g} times "
                "the z0 of calibrated"
            ]
        return [
            f"epsilon {self.target_epsilon:g} at delta {plan.delta:.3g}, {plan.epochs} epochs, "
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
    """Return z₀ with that effective multiplier, or the next float above."""
    z = effective / release.effective_noise_multiplier(1.0)
    while release.effective_noise_multiplier(z) < effective:
        z = float(np.nextafter(z, math.inf))
    return z


def _rounded_up(value: float) -> str:
    """Return a number with few digits, rounded up.

    Example:
        >>> _rounded_up(1.23456001)
        '1.23457'
    """
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{DIGITS}g}"


def _warnings(plan: Plan) -> Tuple[str, ...]:
    """Warn of a decay that spends nearly all of ε at the end."""
    fall = -plan.decay.log_factor(max(plan.epochs - 1, 0))
    if fall <= math.log(SMALL_LAST_NOISE):
        return ()
    return (
        f"the noise of the last epoch is {math.exp(min(fall, 700)):.3g} times smaller than that of "
        "the first, so nearly all of epsilon is spent at the end; lower the decay rate",
    )
