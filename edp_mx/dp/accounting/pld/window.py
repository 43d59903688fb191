"""The tilt and the window in which the sum of many privacy losses is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence, Tuple

import numpy as np

LOG_ALIAS = 40.0  # what lies outside the window: e^−40 of the tilted mass
LARGEST_EXPONENT = 1e6  # of tilted losses: more would cost digits
REACHES = np.geomspace(0.3, 40, 16)  # of Chernoff's bounds, in 1 / standard deviation of the sum

Summand = Tuple[int, np.ndarray, np.ndarray]  # count, losses, log masses


@dataclass(frozen=True)
class Window:
    """A range of sums of losses that holds nearly all of their tilted mass (mean, stddev).

    Masses are kept times e^(λ · loss), λ being `tilt`; `reach` is how far above and below λ
    Chernoff's bound is taken for the two ends.
    """

    left: float
    right: float
    mean: float
    stddev: float
    steps: int
    tilt: float
    reach: Tuple[float, float]


def window_of(summed: Sequence[Summand], *, delta: float) -> Window:
    """Return a window around the ε that belongs to δ.

    The tilt λ is the one at which Chernoff's bound e^(K(λ) − λ K'(λ)) is δ; ε is then near K'(λ),
    the mean of the tilted sum.
    """
    tilt = _tilt(summed, math.log(delta))
    log_moment, mean, variance = _moments(summed, tilt)
    stddev = max(math.sqrt(variance), 1e-9 * abs(mean), 1e-12)
    ends = []
    for sign in (1, -1):
        shifts = sign * REACHES / stddev
        logs = np.array([_moments(summed, tilt + s)[0] for s in shifts]) - log_moment
        bounds = (logs + LOG_ALIAS) / np.abs(shifts)
        best = int(np.argmin(bounds))
        ends.append((float(bounds[best]), float(abs(shifts[best]))))
    (right, reach), (left, back) = ends
    steps = sum(count for count, _, _ in summed)
    return Window(-left, right, mean, stddev, steps, tilt, (reach, back))


def _tilt(summed: Sequence[Summand], log_delta: float) -> float:
    """λ at which the saddle point estimate of δ(K'(λ)) is δ; a large one where there is none.

    δ ≈ e^(K − λ K') / (λ (1 + λ) √(2π K'')), which falls with λ. Any λ is valid; this one keeps
    the digits where they are needed.
    """

    def excess(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        log_moment, mean, variance = _moments(summed, tilt)
        if tilt * abs(mean) > LARGEST_EXPONENT:
            return -math.inf
        spread = 0.5 * math.log(2 * math.pi * max(variance, 1e-300))
        return log_moment - tilt * mean - log_tilt - math.log1p(tilt) - spread - log_delta

    low = high = 0.0
    while excess(high) > 0:
        high += 2.0
    while excess(low) <= 0:
        low -= 2.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return math.exp(low)


def _moments(summed: Sequence[Summand], tilt: float) -> Tuple[float, float, float]:
    """K(λ), K'(λ) and K''(λ) of the sum of all losses."""
    result = np.zeros(3)
    for count, loss, log_mass in summed:
        exponents = log_mass + tilt * loss
        largest = exponents.max()
        weights = np.exp(exponents - largest)
        total = weights.sum()
        mean = weights @ loss / total
        variance = weights @ (loss - mean) ** 2 / total
        result += count * np.array([largest + math.log(total), mean, variance])
    return float(result[0]), float(result[1]), float(result[2])
