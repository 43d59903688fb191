"""Calibration of a whole plan: from a target ε to the plan that meets it."""

from __future__ import annotations

import math

from edp_mx.dp.accounting.accountants import claimed_for
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.calibrate import PlannedSteps, solve_multiplier
from edp_mx.dp.accounting.counting import count_what_holds, least_noise_multiplier
from edp_mx.dp.accounting.coverage import UNKNOWN_SCALES
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError

# Significant digits of z₀. The last digits of a double depend on the processor, and a run must find
# the same z₀ on every worker and when it is resumed elsewhere.
_DIGITS = 8


def calibrated(plan: Plan, *, target_epsilon: float) -> Plan:
    """Return the plan with the smallest z₀ whose ε, if its inputs are public, meets the target.

    The solver behind both `privacy.target_epsilon` and `edp-mx calibrate`. The cost of α is
    counted; z₀ is never so small that float32 could not add its noise.

    Raises:
        UserError: an impossible target, one that α alone exceeds, or a plan that awaits its α.

    Guarantee: `count_what_holds` of the result is at most the target.
    """
    if plan.awaits_scales:
        raise UserError(f"no noise multiplier can be found for a target: {UNKNOWN_SCALES}")
    z = max(_multiplier(plan, target_epsilon), least_noise_multiplier(plan))
    step = 10.0 ** (math.floor(math.log10(z)) + 1 - _DIGITS)
    digits, more = math.ceil(z / step), 1
    while not _bound(plan, _decimal(digits * step)).is_within(target_epsilon):
        digits, more = digits + more, 2 * more
    return plan.with_noise_multiplier(_decimal(digits * step))


def _decimal(z: float) -> float:
    """Return the double nearest to the number of `_DIGITS` digits that is meant."""
    return float(f"{z:.{_DIGITS}g}")


def _multiplier(plan: Plan, target_epsilon: float) -> float:
    """z₀ for the steps and the layer scales, up to rounding."""
    scales = plan.composition(plan.scales_entries())
    alone = count_what_holds(plan, plan.scales_entries())
    if scales.events and alone.is_within(math.inf) and not alone.is_within(target_epsilon):
        raise UserError(
            f"target_epsilon is {target_epsilon:g}, and the layer scales alone cost "
            f"{alone.epsilon} (privacy.scale_release): raise the target, or release them with more "
            "noise"
        )
    per_unit = plan.released.event(1.0, steps=1).effective_noise_multiplier
    accountant, start = claimed_for(plan.released), 1.0
    steps = PlannedSteps(
        target_epsilon=target_epsilon,
        delta=plan.delta,
        decay=plan.decay,
        epochs=plan.epochs,
        steps_per_epoch=plan.steps_per_epoch,
        sample_rate=plan.released.sample_rate,
        neighbours=plan.released.neighbours,
        spent=scales.events,
    )
    if accountant.calibrate is not None:
        start = accountant.calibrate(steps) / per_unit
        if accountant.is_gaussian or not scales.events:
            return start
    return solve_multiplier(
        lambda z: exp_of(_bound(plan, z).epsilon.log), target_epsilon=target_epsilon, start=start
    )


def _bound(plan: Plan, noise_multiplier: float) -> Bound:
    tried = plan.with_noise_multiplier(noise_multiplier)
    return count_what_holds(tried, tried.entries())
