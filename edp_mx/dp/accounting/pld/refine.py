"""Bounds on ε in one direction, on lattices that become finer until the upper bound is close."""

from __future__ import annotations

import math
from typing import Optional, Sequence, Tuple

from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.pld.bounds import Steps, lower_on, upper_on
from edp_mx.dp.accounting.pld.convolution import LARGEST_SIZE, Lattice, make_lattice
from edp_mx.dp.accounting.pld.multiplier_groups import parts_of

DROPPED = (1e-9, 1e-5, 1e-3)  # of δ, given up for a smaller window where that is needed
CLOSE = 3e-3  # of ε; the bound is close if a quarter of the spacing gains no more
CLOSE_ENOUGH = 1e-7  # the same where ε itself is next to nothing
ROUNDING = 2e-3  # of δ; the share that the bound on rounding may take
FINEST = 2**23  # points over all multipliers, where a lattice exceeds LARGEST_SIZE


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
