"""From the ε that is wanted to the noise that gives it."""

from __future__ import annotations

import math
from typing import Callable

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.zcdp import CONVERSIONS, log_epsilon_simple
from edp_mx.errors import UserError

SAFETY = 1e-10  # relative, on ρ: covers the rounding of the conversions


def calibrate_rf(
    *, target_epsilon: float, delta: float, decay: Decay, epochs: int, conversion: str
) -> float:
    """The smallest z₀ for which shuffled epochs stay within (ε, δ).

    z₀ = √(A / (2 ρ*)), A = Σ d(t)⁻², where ρ* is the largest ρ that converts to at most ε.

    Args:
        target_epsilon: ε > 0.
        delta: δ, between 0 and 1.
        decay: d(t).
        epochs: T ≥ 1.
        conversion: exact, renyi or simple.

    Returns:
        An effective noise multiplier on the safe side (ε is met, not exceeded).

    Raises:
        UserError: an impossible target, or a z₀ beyond a double.

    Example:
        >>> round(calibrate_rf(target_epsilon=1.0, delta=1e-5, decay=Decay(), epochs=30,
        ...     conversion="exact"), 4)
        20.4335
    """
    if conversion not in CONVERSIONS:
        raise UserError(
            f"conversion is {conversion!r}; choose one of {', '.join(sorted(CONVERSIONS))}"
        )
    if not 0 < target_epsilon < math.inf:
        raise UserError(f"target_epsilon is {target_epsilon}; it must be finite and above 0")
    if not 0 < delta < 1:
        raise UserError(f"delta is {delta}; it must lie between 0 and 1")
    if epochs < 1:
        raise UserError(f"epochs is {epochs}; at least one is needed to calibrate for")
    log_rho = _largest_log_rho(CONVERSIONS[conversion], target_epsilon, delta)
    log_z = 0.5 * (decay.log_inverse_square_sum(epochs) - math.log(2) - log_rho + SAFETY)
    z = LogNumber(log_z).value
    if z is None:
        raise UserError(
            f"the noise multiplier for epsilon {target_epsilon} would be 10^"
            f"{log_z / math.log(10):.1f}, beyond a double; lower the decay rate or the epochs"
        )
    return z


def _largest_log_rho(
    log_epsilon: Callable[[float, float], float], epsilon: float, delta: float
) -> float:
    """log ρ*, by bisection from below; starts at the simple conversion's, which is in closed form.

    Every conversion allows at least that ρ: √ρ = √(L + ε) − √L with L = ln 1/δ.
    """
    target, wanted = -math.log(delta), log_of(epsilon)
    low = 2 * (math.log(epsilon) - math.log(math.sqrt(target + epsilon) + math.sqrt(target)))
    if log_epsilon is log_epsilon_simple:
        return low
    low, step = low - SAFETY, 1.0
    while log_epsilon(low + step, delta) <= wanted:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1e-14 * max(1.0, abs(low)):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_epsilon(middle, delta) <= wanted else (low, middle)
    return low
