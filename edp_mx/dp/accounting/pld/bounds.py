"""Two bounds on ε of one pair of neighbours, in one direction, from sums of privacy losses."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Callable, Dict, List, Tuple

import numpy as np
from scipy.signal import lfilter

from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.pld.convolution import Group, Lattice, Mass, convolve, split_up
from edp_mx.dp.accounting.pld.multiplier_groups import Part
from edp_mx.dp.accounting.pld.pairs import OUTSIDE, Cells, cells_of
from edp_mx.dp.accounting.pld.window import Window, window_of

PER_STDDEV = 512  # cells of outcomes in one standard deviation of the noise
COARSE = 32  # the same, where only the place of the window is looked for


@dataclasses.dataclass
class Steps:
    """The steps that are composed, in one direction, and the δ that is asked for.

    Attributes:
        direction: remove, add, replace or swap.
        above, below: parts that dominate the steps, and parts that these dominate.
        dropped: the share of δ that may be given up over all steps: outcomes of the least and the
            most loss are left out and counted as lost.
    """

    direction: str
    above: List[Part]
    below: List[Part]
    delta: float
    dropped: float
    _cut: Dict[Tuple[float, float], Cells] = dataclasses.field(default_factory=dict)

    def cells(self, q: float, z: float) -> Cells:
        """Return the cells of one step, which are cut once."""
        if (q, z) not in self._cut:
            self._cut[q, z] = self._cells(q, z, PER_STDDEV)
        return self._cut[q, z]

    @cached_property
    def window(self) -> Window:
        """The window around the ε of δ, by coarse cells of dominated steps."""
        coarse = [self._cells(p.sample_rate, p.multipliers[0], COARSE) for p in self.below]
        summed = [(p.steps[0][0], c.loss, c.log_p) for p, c in zip(self.below, coarse)]
        return window_of(summed, delta=self.delta)

    @property
    def count(self) -> int:
        return sum(count for part in self.above for count, _ in part.steps)

    @property
    def lost(self) -> float:
        """A bound on the mass of the outcomes that no cell holds."""
        return self.count * OUTSIDE + self.dropped * self.delta

    def _cells(self, q: float, z: float, per_stddev: int) -> Cells:
        cells = cells_of(self.direction, sample_rate=q, noise_multiplier=z, per_stddev=per_stddev)
        return cells.without_ends(self.dropped * self.delta / self.count / 2)


def upper_on(lattice: Lattice, steps: Steps) -> Tuple[float, float]:
    """Return an ε that holds (∞ beyond the window), and the share of δ that rounding takes.

    δ(ε) = Σ p_j (1 − e^(ε − l_j)) over l_j > ε, plus the mass that was left out.
    """
    found = convolve(lattice, _groups(steps, steps.above, _split, lattice))
    losses, decay = lattice.losses, lattice.tilt * lattice.spacing
    error = found.error_from_the_right(decay)
    above = _from_the_right(found.tilted, decay) + error
    discounted = _from_the_right(found.tilted, decay + lattice.spacing)
    beyond = exp_of(found.log_scale + found.log_right - lattice.tilt * float(losses[-1]))
    spare = steps.delta - steps.lost - beyond
    if spare <= 0:
        return math.inf, 1.0
    log_spare = math.log(spare) - found.log_scale + lattice.tilt * losses  # in units of above
    with np.errstate(divide="ignore", invalid="ignore"):
        too_much = np.flatnonzero(np.log(above - discounted) > log_spare)
    k = int(too_much[-1]) + 1 if len(too_much) else 0
    if k == lattice.size:
        return math.inf, 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # ε − l_k where δ is met
        ahead = float(np.log((above[k] - exp_of(float(log_spare[k]))) / discounted[k]))
    ahead = max(ahead, -lattice.spacing) if k and ahead < 0 else 0.0
    return max(0.0, float(losses[k]) + ahead), error * exp_of(-float(log_spare[k]))


def lower_on(lattice: Lattice, steps: Steps) -> float:
    """Return the ε below which the best test "the sum of rounded losses is at least t" refutes all.

    δ(ε) ≥ P(test) − e^ε Q(test), whatever the test.
    """
    by_p, by_q = lattice, dataclasses.replace(lattice, tilt=lattice.tilt + 1)
    losses = lattice.losses  # (size,)
    power = convolve(by_p, _groups(steps, steps.below, _nearest("log_p"), by_p))
    level = convolve(by_q, _groups(steps, steps.below, _nearest("log_q"), by_q))
    decay, faster = by_p.tilt * by_p.spacing, by_q.tilt * by_q.spacing
    true = _from_the_right(power.tilted, decay) - power.error_from_the_right(decay)
    true = true - exp_of(float(np.logaddexp(power.log_left, power.log_right)))
    false = _from_the_right(level.tilted, faster) + level.error_from_the_right(faster)
    beyond = level.log_right + by_q.tilt * (losses - losses[-1])  # (size,)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_false = np.logaddexp(np.log(false), beyond) + level.log_scale - by_q.tilt * losses
        log_true = np.log(true) + power.log_scale - by_p.tilt * losses
        ratio = math.log(steps.delta) - log_true  # (size,); a test below δ refutes nothing
        above_delta = log_true + np.log(-np.expm1(np.minimum(ratio, 0.0)))
        epsilons = above_delta - log_false
    return float(np.max(epsilons[np.isfinite(epsilons)], initial=0.0))


def _groups(
    steps: Steps, parts: List[Part], rounded: Callable[[Cells, float], Mass], lattice: Lattice
) -> List[Group]:
    """The parts as masses on the lattice."""
    return [
        Group(
            [rounded(steps.cells(part.sample_rate, z), lattice.spacing) for z in part.multipliers],
            part.steps,
        )
        for part in parts
    ]


def _from_the_right(values: np.ndarray, decay: float) -> np.ndarray:
    """Σ_{j ≥ k} value_j e^(−decay (j − k)), without overflow of the factors."""
    factor = math.exp(-decay)
    return lfilter([1.0], [1.0, -factor], values[::-1])[::-1]  # (size,)


def _split(cells: Cells, spacing: float) -> Mass:
    """Each cell moved to its two ends, and these to the lattice points around them."""
    with np.errstate(divide="ignore"):
        log_p = [cells.log_p + np.log1p(-cells.up), cells.log_p + np.log(cells.up)]
    losses = np.concatenate([cells.low, cells.high])
    return split_up(losses, np.concatenate(log_p), spacing)


def _nearest(log_mass: str) -> Callable[[Cells, float], Mass]:
    """Each cell moved to the point nearest to its loss: a valid test, if not the best."""
    return lambda cells, spacing: Mass(
        np.rint(cells.loss / spacing).astype(np.int64), getattr(cells, log_mass)
    )
