"""ε of Poisson-sampled steps from the distribution of their privacy loss, from above and below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from edp_mx.dp.accounting.choices import check_delta
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.pld.bounds import Steps, lower_on, upper_on
from edp_mx.dp.accounting.pld.convolution import LARGEST_SIZE, Lattice, make_lattice
from edp_mx.dp.accounting.pld.multiplier_groups import parts_of
from edp_mx.dp.accounting.pld.pairs import DIRECTIONS
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_rho_of

SMALLEST_MULTIPLIER = 1e-7  # below it sampling is ignored
DROPPED = (1e-9, 1e-5, 1e-3)  # of δ, given up for a smaller window where that is needed
CLOSE = 3e-3  # of ε; the bound is close if a quarter of the spacing gains no more
CLOSE_ENOUGH = 1e-7  # the same where ε itself is next to nothing
ROUNDING = 2e-3  # of δ; the share that the bound on rounding may take
FINEST = 2**23  # points over all multipliers, where a lattice exceeds LARGEST_SIZE


@dataclass(frozen=True)
class Interval:
    """ε with bounds: no smaller one than `lower` holds; `upper`, the one to claim, does.

    `estimate` lies between them, where their errors of second order cancel.
    """

    lower: float
    estimate: float
    upper: float


def epsilon_poisson_pld(composition: Composition, *, delta: float) -> Interval:
    """Return ε of Poisson steps at δ, as an interval that contains the exact one.

    Upper: outcomes are cut into cells. Each cell is replaced by its two ends, and these by the
    lattice points around them, keeping the sums of P and Q, so that the resulting pair dominates;
    all mass outside counts as lost. Lower: the power and level of one test of the outcomes, "the
    sum of rounded losses is above t", for the best t. The error of both is of second order in the
    size of the cells, that of upper twice as large.

    Raises:
        UserError: shuffled epochs, or an impossible δ.

    Guarantee: `upper` holds, up to the rounding of doubles, for which a bound is added (of FFT;
        not of the exponential function). For zero-out it is the larger of add and of remove.

    Edge cases: no steps, or none that draws a record, give 0, z = 0 gives ∞, q = 1 alone is
        exact. Never above the ε without sampling, which is returned for z < 1e-7 (with `lower` 0).
        With more than 64 distinct multipliers of one rate `upper` loses some 1e-4, `lower` a few
        per cent (both a few per cent for single records replaced). The interval is wide for
        multipliers below 1e-3, where sums of losses have more than one scale, and where records are
        almost never drawn (q ≤ 1e-6, z ≤ 0.6, δ ≤ 1e-7): there by 1 %, at δ = 1e-9 by up to half of
        ε, since a double has too few digits beside the mass of no draw.

    Source: Gopi, Lee and Wutschitz (2021) (interval); Doroshenko et al. (2022) (connect the dots);
        Koskela, Jälkö and Honkela (2020) (FFT and its wrap-around); Alghamdi et al. (2023) (tilt).
    """
    worst, upper = _worst(composition, delta)
    if worst is None:
        is_exact = upper == math.inf or _smallest(composition) >= SMALLEST_MULTIPLIER
        return Interval(upper if is_exact else 0.0, upper, upper)
    lower = min(worst.lower(), upper)
    return Interval(lower, (upper + 2 * lower) / 3 if worst.is_exact else upper, upper)


def upper_epsilon_poisson_pld(composition: Composition, *, delta: float) -> float:
    """Return `upper` of `epsilon_poisson_pld` alone, in half of the time."""
    return _worst(composition, delta)[1]


def _worst(composition: Composition, delta: float) -> Tuple[Optional[DirectedBounds], float]:
    """The direction with the largest upper bound (None if a closed form decides), and the bound."""
    check_delta(delta)
    drawn = [event for event in composition.only("poisson") if event.sample_rate > 0]
    composition, events = Composition(composition.neighbours, drawn), tuple(drawn)
    unsampled = _without_sampling(composition, delta)
    is_plain = all(event.sample_rate == 1 for event in events)
    if is_plain or unsampled in (0.0, math.inf) or _smallest(composition) < SMALLEST_MULTIPLIER:
        return None, unsampled
    if _total_variation(composition) <= delta:
        return None, 0.0
    found = [DirectedBounds(name, events, delta) for name in DIRECTIONS[composition.neighbours]]
    while True:  # until the worst of the directions cannot be bounded better
        worst = max(found, key=lambda bounds: bounds.upper)
        if not worst.refine():
            return worst, min(worst.upper, unsampled)


def _smallest(composition: Composition) -> float:
    """The smallest multiplier of a sampled step; ∞ without one."""
    return min(
        (e.effective_noise_multiplier for e in composition.events if e.sample_rate < 1),
        default=math.inf,
    )


def _total_variation(composition: Composition) -> float:
    """A bound on δ at ε = 0: Σ q (Φ(μ/2) − Φ(−μ/2)), since such distances add up at most."""
    far = 2 if composition.neighbours == "replace_one" else 1  # twice as far apart
    return sum(
        e.count * e.sample_rate * math.erf(far / e.effective_noise_multiplier / math.sqrt(8))
        for e in composition.events
    )


def _without_sampling(composition: Composition, delta: float) -> float:
    """ε if every record were in every step: one Gaussian."""
    log = log_rho_of(composition.events)
    if composition.neighbours == "replace_one":
        log += math.log(4)  # twice as far apart
    return exp_of(log_epsilon_exact(log, delta))


class DirectedBounds:
    """ε between P and Q of one direction, composed over all steps, at one δ.

    Attributes:
        is_exact: whether all multipliers are taken as they are, none moved to a node.
        upper: the best ε so far that holds; at most what no sum of losses exceeds.
    """

    def __init__(self, direction: str, events: Sequence[Event], delta: float) -> None:
        above, below, self.is_exact = parts_of(events, direction)
        self._steps = [Steps(direction, above, below, delta, dropped) for dropped in DROPPED]
        self._spectra = sum(len(part.multipliers) for part in above)
        self._largest = max(LARGEST_SIZE, FINEST // self._spectra)
        self.upper = _most(direction, events)
        self._found = math.inf  # by the attempt before
        self._best: Optional[Tuple[Lattice, Steps]] = None
        self._attempts, self._finer, self._is_done = 0, 0.25, False
        self._level = 0  # of DROPPED
        self._attempt()

    def refine(self) -> bool:
        """Try a finer lattice; return False if the bound is close or the lattice at its finest."""
        if self._is_done:
            return False
        self._attempt()
        return True

    def lower(self) -> float:
        """Return an ε below which a test refutes all, on the lattice of the best upper bound."""
        assert self._best is not None
        lattice, steps = self._best
        if lattice.size * self._spectra > 2 * FINEST:  # any lattice gives a valid test
            lattice = lattice.coarser(2 if self.is_exact else 8)  # nodes cost far more than that
        return lower_on(lattice, steps)

    def _attempt(self) -> None:
        """One more upper bound; what it gains shows what the spacing costs."""
        if self._attempts > 1:
            self._level = min(self._level + 1, len(DROPPED) - 1)
        steps, lattice = self._lattice()
        if self._attempts == 1 and lattice.size >= self._largest:  # only a smaller window helps
            self._level = 1
            steps, lattice = self._lattice()
        found, rounding = upper_on(lattice, steps)
        gained = self._found - found if self._found < math.inf else math.inf
        if found <= self.upper or self._best is None:
            self._best = lattice, steps
        self.upper = min(self.upper, found)
        is_fine = found < math.inf and gained <= max(CLOSE * found, CLOSE_ENOUGH)
        is_last = steps is self._steps[-1] and (is_fine or lattice.size >= self._largest)
        is_close = is_fine and (rounding <= ROUNDING or found <= CLOSE_ENOUGH)
        self._is_done = is_last or is_close
        self._attempts, self._found = self._attempts + 1, found
        self._finer *= 1 if is_fine else 4

    def _lattice(self) -> Tuple[Steps, Lattice]:
        """The steps at the present level of DROPPED, and a lattice for their window."""
        steps = self._steps[self._level]
        return steps, make_lattice(steps.window, finer=self._finer, largest=self._largest)


def _most(direction: str, events: Sequence[Event]) -> float:
    """The largest possible loss: −log(1 − q) per step for add, otherwise ∞."""
    if direction != "add":
        return math.inf
    rates = [(e.count, e.sample_rate) for e in events]
    return sum(n * -math.log1p(-q) if q < 1 else math.inf for n, q in rates)
