"""Calibration: the noise multiplier at which given steps meet a target ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Tuple

from scipy.optimize import brentq

from edp_mx.dp.accounting.choices import check_rate
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.lognumber import LogNumber, log_of
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_epsilon_gdp_clt, log_rho_of
from edp_mx.errors import UserError

SAFETY = 1e-10  # relative, on ρ: covers the rounding of the conversions

_LOG_RANGE = math.log(1e6)  # of a Poisson calibration, both ways


@dataclass(frozen=True)
class PlannedSteps:
    """Steps to come whose noise is to be found, and the target that they are to meet.

    Attributes:
        spent: further releases, with multipliers of their own.

    Raises:
        UserError: a target that no noise can meet.
    """

    target_epsilon: float
    delta: float
    decay: Decay
    epochs: int
    steps_per_epoch: int = 1
    sample_rate: float = 1.0
    neighbours: str = "zero_out"
    spent: Tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        target = self.target_epsilon
        if not 0 < target < math.inf:
            raise UserError(f"target_epsilon is {target}; it must be finite and above 0")
        check_rate(self.delta, "delta", is_open=True)
        if self.epochs < 1:
            raise UserError(f"epochs is {self.epochs}; at least one is needed to calibrate for")
        if self.steps_per_epoch < 1:
            raise UserError(f"steps_per_epoch is {self.steps_per_epoch}; at least one is needed")
        if self.sample_rate == 0:
            raise UserError("sample_rate is 0; nothing is ever drawn, so any noise will do")


def calibrate_rf(steps: PlannedSteps) -> float:
    """Return the smallest z₀ for which shuffled epochs stay within (ε, δ), converted exactly.

    z₀ = √(A / (2 ρ*)), A = Σ d(t)⁻², where ρ* is the largest ρ that converts to at most ε, less
    what other releases spend. The multiplier is an effective one, on the safe side.
    """
    target_epsilon, spent_log_rho = steps.target_epsilon, log_rho_of(steps.spent)
    log_rho = _largest_log_rho(target_epsilon, steps.delta)
    if spent_log_rho >= log_rho:
        raise UserError(
            f"target_epsilon is {target_epsilon:g}, and other releases spend all of it; raise it"
        )
    log_rho += math.log(-math.expm1(spent_log_rho - log_rho))
    planned = steps.decay.log_inverse_square_sum(steps.epochs) - math.log(2)  # log ρ at z₀ = 1
    log_z = 0.5 * (planned - log_rho + SAFETY)
    z = LogNumber(log_z).value
    if z is None:
        raise UserError(
            f"the noise multiplier for epsilon {target_epsilon} would be 10^"
            f"{log_z / math.log(10):.1f}, beyond a double; lower the decay rate or the epochs"
        )
    return z


def _largest_log_rho(epsilon: float, delta: float) -> float:
    """log ρ*, by bisection upwards from the ρ that ε = ρ + 2√(ρ ln 1/δ) allows in closed form."""
    target, wanted = -math.log(delta), log_of(epsilon)
    low = 2 * (math.log(epsilon) - math.log(math.sqrt(target + epsilon) + math.sqrt(target)))
    low, step = low - SAFETY, 1.0
    while log_epsilon_exact(low + step, delta) <= wanted:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1e-14 * max(1.0, abs(low)):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_epsilon_exact(middle, delta) <= wanted else (low, middle)
    return low


def calibrate_poisson(steps: PlannedSteps, *, epsilon_of: Callable[..., float]) -> float:
    """Return the smallest z₀, to 1e-5, with which steps drawn by chance have at most the target ε.

    The multiplier is an effective one, on the safe side, from 1e-6 to 1e6; `spent` is left out.
    """

    def drawn(z: float, neighbours: str) -> Composition:
        multipliers = [steps.decay.noise_multiplier_at(z, t) for t in range(steps.epochs)]
        count, rate = steps.steps_per_epoch, steps.sample_rate
        return Composition(neighbours, [Event("poisson", z_t, count, rate) for z_t in multipliers])

    low, high = -_LOG_RANGE, _LOG_RANGE
    while high - low > 0.01:  # by the simplest central limit, only to start the search
        middle = 0.5 * (low + high)
        simplest = drawn(math.exp(middle), "zero_out")
        is_low = log_epsilon_gdp_clt(simplest, steps.delta) > math.log(steps.target_epsilon)
        low, high = (middle, high) if is_low else (low, middle)
    return solve_multiplier(
        lambda z: epsilon_of(drawn(z, steps.neighbours), delta=steps.delta),
        target_epsilon=steps.target_epsilon,
        start=math.exp(low),
    )


def solve_multiplier(
    epsilon_of: Callable[[float], float], *, target_epsilon: float, start: float = 1.0
) -> float:
    """Return the smallest multiplier from 1e-6 to 1e6, to 1e-5, whose ε is at most the target.

    `epsilon_of` falls with the multiplier; it is called some ten times if `start` is near.
    """

    @lru_cache(maxsize=None)
    def excess(log_z: float) -> float:
        """log of ε over the target, capped where its size no longer matters."""
        found = epsilon_of(math.exp(log_z))
        return min(max(log_of(found) - math.log(target_epsilon), -3.0), 3.0)

    low = high = math.log(start)
    step = 0.02
    while excess(low) <= 0 and low > -_LOG_RANGE:
        low, high, step = low - step, low, 3 * step
    while excess(high) > 0 and high < _LOG_RANGE:
        low, high, step = high, high + step, 3 * step
    if excess(low) <= 0 or excess(high) > 0:
        raise UserError(
            f"no noise multiplier between 1e-6 and 1e6 gives epsilon {target_epsilon:g}; change "
            "the target, delta, the epochs or the sample rate"
        )
    log_z = float(brentq(excess, low, high, xtol=2e-6))
    while excess(log_z) > 0:
        log_z += 2e-6
    return math.exp(log_z)
