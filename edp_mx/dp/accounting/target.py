"""Calibration: from a target ε to the plan that meets it with the least noise."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Callable, Optional

from scipy.optimize import brentq

from edp_mx.dp.accounting.accountants import claimed_for
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import count_what_holds, least_noise_multiplier
from edp_mx.dp.accounting.coverage import UNKNOWN_SCALES
from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.zcdp import log_epsilon_gdp_clt
from edp_mx.errors import UserError

# Significant digits of z₀. The last digits of a double depend on the processor, and a run must find
# the same z₀ on every worker and when it is resumed elsewhere.
_DIGITS = 8
_LOG_RANGE = math.log(1e300)  # of the search for z₀, both ways
_LOG_LIKELY = math.log(1e6)  # where z_eff of sampled steps is looked for first, both ways


def calibrated(plan: Plan, *, target_epsilon: float) -> Plan:
    """Return the plan with the smallest z₀ whose ε, if its inputs are public, meets the target.

    The solver behind both `privacy.target_epsilon` and `edp-mx calibrate`. The cost of α is
    counted; z₀ is never so small that float32 could not add its noise.

    Raises:
        UserError: an impossible target, one that α alone exceeds, or a plan that awaits its α.

    Guarantee: `count_what_holds` of the result is at most the target.
    """
    _refuse_impossible(plan, target_epsilon)
    z = max(_multiplier(plan, target_epsilon), least_noise_multiplier(plan))
    step = 10.0 ** (math.floor(math.log10(z)) + 1 - _DIGITS)
    digits, more = math.ceil(z / step), 1
    while not _bound(plan, _decimal(digits * step)).is_within(target_epsilon):
        digits, more = digits + more, 2 * more
    return plan.with_noise_multiplier(_decimal(digits * step))


def _decimal(z: float) -> float:
    """Return the double nearest to the number of `_DIGITS` digits that is meant."""
    return float(f"{z:.{_DIGITS}g}")


def _bound(plan: Plan, noise_multiplier: float) -> Bound:
    tried = plan.with_noise_multiplier(noise_multiplier)
    return count_what_holds(tried, tried.entries())


def _refuse_impossible(plan: Plan, target_epsilon: float) -> None:
    if not 0 < target_epsilon < math.inf:
        raise UserError(f"target_epsilon is {target_epsilon}; it must be finite and above 0")
    if plan.awaits_scales:
        raise UserError(f"no noise multiplier can be found for a target: {UNKNOWN_SCALES}")
    if not plan.steps * plan.released.sample_rate:
        raise UserError("epochs, steps_per_epoch or sample_rate is 0; any noise meets any target")
    alone = count_what_holds(plan, plan.scales_entries())
    if not alone.is_within(target_epsilon):
        raise UserError(
            f"target_epsilon is {target_epsilon:g}, and the layer scales alone cost "
            f"{alone.epsilon} (privacy.scale_release): raise the target, or release them with more "
            "noise"
        )


def _multiplier(plan: Plan, target_epsilon: float) -> float:
    """z₀ before it is rounded up: to 1e-10, or to 1e-5 where an ε takes a while to count."""
    claimed, target = claimed_for(plan.released), math.log(target_epsilon)

    def steps(log_z: float) -> Composition:
        tried = plan.with_noise_multiplier(math.exp(log_z))
        return tried.composition(tried.entries())

    @lru_cache(maxsize=None)
    def excess(log_z: float) -> float:
        """log of ε over the target, capped where its size no longer matters."""
        return min(max(claimed.log_epsilon(steps(log_z), plan.delta) - target, -3.0), 3.0)

    low = high = -math.log(plan.released.event(1.0, steps=1).effective_noise_multiplier)
    if plan.released.draws.by_chance:
        low, high = low - _LOG_LIKELY, high + _LOG_LIKELY
    while high - low > 0.01:  # by the simplest central limit, only to start the search
        middle = 0.5 * (low + high)
        simplest = Composition("zero_out", steps(middle).events)
        is_low = log_epsilon_gdp_clt(simplest, plan.delta) > target
        low, high = (middle, high) if is_low else (low, middle)
    log_z = _root(excess, low, close=1e-11 if claimed.is_gaussian else 2e-6)
    if log_z is None:
        raise UserError(
            f"no noise multiplier from 1e-300 to 1e300 gives epsilon {target_epsilon:g}; change "
            "the target, delta, the epochs, the sample rate or the decay rate"
        )
    return math.exp(log_z)


def _root(falling: Callable[[float], float], start: float, *, close: float) -> Optional[float]:
    """Where a function falls to 0 or below, at most some `close` behind; None if it never does."""
    low, high, step = start, start, 0.02
    while falling(low) <= 0 and low > -_LOG_RANGE:
        low, high, step = max(low - step, -_LOG_RANGE), low, 3 * step
    while falling(high) > 0 and high < _LOG_RANGE:
        low, high, step = high, min(high + step, _LOG_RANGE), 3 * step
    if not falling(high) <= 0 < falling(low):
        return None
    found = float(brentq(falling, low, high, xtol=close))
    while falling(found) > 0:
        found += close
    return found
