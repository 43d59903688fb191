"""Two bounds on ε of one pair of neighbours, in one direction, from sums of privacy losses."""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Dict, List, Sequence, Tuple

import numpy as np
from scipy.signal import lfilter

from edp_mx.accounting.events import Event
from edp_mx.accounting.lognumber import exp_of
from edp_mx.accounting.pld_convolution import (
    LOG_ALIAS,
    Group,
    Lattice,
    Mass,
    convolve,
    make_lattice,
    nearest,
    split_up,
)
from edp_mx.accounting.pld_pairs import OUTSIDE, Cells, cells_of
from edp_mx.accounting.pld_parts import Part, parts_of

PER_STDDEV = 512  # cells of outcomes in one standard deviation of the noise
COARSE = 32  # the same, where only the place of the window is looked for
LARGEST_EXPONENT = 1e6  # of tilted losses: more would cost digits
REACHES = np.geomspace(0.3, 40, 16)  # of Chernoff's bounds, in 1 / standard deviation of the sum

Summand = Tuple[int, np.ndarray, np.ndarray]  # count, losses, log masses


class DirectedBounds:
    """ε between P and Q of one direction, composed over all steps, at one δ.

    Attributes:
        is_exact: every multiplier is taken as it is, none moved to a neighbour.
    """

    def __init__(self, direction: str, events: Sequence[Event], delta: float) -> None:
        self._direction, self._events, self._delta = direction, events, delta
        self._above, self._below, self.is_exact = parts_of(events, direction)
        self._steps = sum(event.count for event in events)
        self._cut: Dict[Tuple[float, float], Cells] = {}
        self._centre, self._lattice = self._place()

    def upper(self) -> float:
        """ε that holds; what no step exceeds, at most, where the window does not reach so far.

        δ(ε) = Σ p_j (1 − e^(ε − l_j)) over l_j > ε, and what was left out is added.
        """
        lattice, found = self._lattice, convolve(self._lattice, self._groups(self._above, _split))
        losses = lattice.losses  # (size,)
        above = _from_the_right(found.tilted, found.rounding, lattice.tilt * lattice.spacing)
        discounted = _from_the_right(found.tilted, 0.0, (lattice.tilt + 1) * lattice.spacing)
        beyond = exp_of(found.log_scale + found.log_right - lattice.tilt * float(losses[-1]))
        spare = self._delta - self._steps * OUTSIDE - beyond
        if spare <= 0:
            return self._most
        log_spare = math.log(spare) - found.log_scale + lattice.tilt * losses  # in units of above
        with np.errstate(divide="ignore", invalid="ignore"):
            too_much = np.flatnonzero(np.log(above - discounted) > log_spare)
        k = int(too_much[-1]) + 1 if len(too_much) else 0
        if k == lattice.size:
            return self._most
        with np.errstate(divide="ignore", invalid="ignore"):  # ε − l_k where δ is met
            ahead = float(np.log((above[k] - exp_of(float(log_spare[k]))) / discounted[k]))
        ahead = max(ahead, -lattice.spacing) if k and ahead < 0 else 0.0
        return min(max(0.0, float(losses[k]) + ahead), self._most)

    @property
    def _most(self) -> float:
        """What the loss cannot exceed: −log(1 − q) a step for add, otherwise ∞."""
        if self._direction != "add":
            return math.inf
        rates = [(e.count, e.sample_rate) for e in self._events]
        return sum(n * -math.log1p(-q) if q < 1 else math.inf for n, q in rates)

    def lower(self) -> float:
        """ε that the best test "the sum of rounded losses is at least t" refutes all below of.

        δ(ε) ≥ P(test) − e^ε Q(test), whatever the test.
        """
        by_p = self._lattice
        by_q = dataclasses.replace(by_p, tilt=by_p.tilt + 1)
        losses = by_p.losses  # (size,)
        power = convolve(by_p, self._groups(self._below, _nearest_p))
        level = convolve(by_q, self._groups(self._below, _nearest_q))
        true = _from_the_right(power.tilted, -power.rounding, by_p.tilt * by_p.spacing)
        true = true - exp_of(float(np.logaddexp(power.log_left, power.log_right)))
        false = _from_the_right(level.tilted, level.rounding, by_q.tilt * by_q.spacing)
        beyond = level.log_right + by_q.tilt * (losses - losses[-1])  # (size,)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_false = np.logaddexp(np.log(false), beyond) + level.log_scale - by_q.tilt * losses
            log_true = np.log(true) + power.log_scale - by_p.tilt * losses
            above_delta = log_true + np.log(-np.expm1(math.log(self._delta) - log_true))
            epsilons = above_delta - log_false
        return float(np.max(epsilons[np.isfinite(epsilons)], initial=0.0))

    def _groups(self, parts: List[Part], rounded: Callable[[Cells, float], Mass]) -> List[Group]:
        """The parts as masses on the lattice."""
        return [
            Group(
                [rounded(self._cells(part.sample_rate, z), self._lattice.spacing) for z in zs],
                part.steps,
            )
            for part in parts
            for zs in [part.multipliers]
        ]

    def _cells(self, q: float, z: float) -> Cells:
        """The cells of one step, cut once."""
        if (q, z) not in self._cut:
            self._cut[q, z] = cells_of(
                self._direction, sample_rate=q, noise_multiplier=z, per_stddev=PER_STDDEV
            )
        return self._cut[q, z]

    def _place(self) -> Tuple[float, Lattice]:
        """Where ε lies, and a window around it.

        The tilt λ is the one at which Chernoff's bound e^(K(λ) − λ K'(λ)) is δ; ε is then near
        K'(λ), the mean of the tilted sum.
        """
        summed = [self._coarse(part) for part in self._below]
        tilt = _tilt(summed, math.log(self._delta))
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
        return mean, make_lattice(
            left=-left,
            right=right,
            mean=mean,
            stddev=stddev,
            steps=self._steps,
            tilt=tilt,
            reach=(reach, back),
        )

    def _coarse(self, part: Part) -> Summand:
        """The steps of one multiplier, only to find the window by."""
        cells = cells_of(
            self._direction,
            sample_rate=part.sample_rate,
            noise_multiplier=part.multipliers[0],
            per_stddev=COARSE,
        )
        return part.steps[0][0], cells.loss, cells.log_p


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


def _from_the_right(values: np.ndarray, error: float, decay: float) -> np.ndarray:
    """Σ_{j ≥ k} (value_j + error) e^(−decay (j − k)), without overflow of the factors."""
    factor = math.exp(-decay)
    summed = lfilter([1.0], [1.0, -factor], values[::-1])[::-1]  # (size,)
    terms = len(values) if factor == 1 else min(len(values), -1 / math.expm1(-decay))
    return summed + error * terms


def _split(cells: Cells, spacing: float) -> Mass:
    """A cell at its two ends, those at the points around them."""
    with np.errstate(divide="ignore"):
        log_p = [cells.log_p + np.log1p(-cells.up), cells.log_p + np.log(cells.up)]
    losses = np.concatenate([cells.low, cells.high])
    return split_up(losses, np.concatenate(log_p), spacing)


def _nearest_p(cells: Cells, spacing: float) -> Mass:
    """A cell at the point nearest to its loss, with its probability under P."""
    return nearest(cells.loss, cells.log_p, spacing)


def _nearest_q(cells: Cells, spacing: float) -> Mass:
    """The same under Q."""
    return nearest(cells.loss, cells.log_q, spacing)
