"""The budget of a run and the ε spent so far, from its plan and its ledger."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from edp_mx.dp.accounting.budget import permitted_steps, refuse_unaffordable
from edp_mx.dp.accounting.chain import Chain
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.guarantee import Guarantee, guarantee
from edp_mx.dp.accounting.ledger import Ledger, LedgerFile, LedgerMark
from edp_mx.dp.accounting.plan import Plan
from edp_mx.runtime.distributed import Workers

logger = logging.getLogger(__name__)


class UnwrittenLedger:
    """A `LedgerFile` without a file: it counts what this process releases, and goes with it."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._is_stopped = plan, False
        self._entries: List[Entry] = []

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def complete(self, scales: Sequence[float]) -> None:
        self._plan = self._plan.with_layer_scales(scales)

    def stop(self) -> None:
        self._is_stopped = True

    def read(self) -> Ledger:
        return Ledger(self._plan, tuple(self._entries), False, Chain(), self._is_stopped)


AnyLedger = Union[LedgerFile, UnwrittenLedger]


class Spending:
    """Writes each release down before it is made, and permits none beyond the budget.

    The plan has z₀; its α may still be unknown until `complete`.

    Args:
        open_ledger: opens the ledger, on rank 0 alone; not called without a mechanism.

    Guarantee: each line of the ledger is on disk before its release. What an interrupted run
    repeats is written down and counted again: the steps since the checkpoint, or of a shuffled
    epoch the whole, since a record may have been in any of them. The ledger may overstate what was
    released, never understate it.
    """

    def __init__(self, plan: Plan, workers: Workers, open_ledger: Callable[[], AnyLedger]) -> None:
        self.plan, self._workers = plan, workers
        self._ledger: Optional[AnyLedger] = None
        self._next, self._end = (-1, 0), 0  # the next step of an epoch, and where its steps end
        if plan.release is not None:
            workers.on_first(lambda: self._open(open_ledger))

    def known_scales(self) -> Optional[Tuple[float, ...]]:
        """Return α of a resumed run; None if it must be made now.

        If it is released from private data, the ledger has its cost when this returns. An α that
        costs more than the budget is refused before anything is released.
        """
        return self._workers.on_first(self._known_scales)

    def complete(self, scales: Sequence[float]) -> Plan:
        """Complete the plan by α, the same on all workers, and write it down."""
        self.plan = self.plan.with_layer_scales(scales)
        self._workers.agree("the privacy plan", self.plan)
        self._workers.on_first(lambda: self._file.complete(scales))
        return self.plan

    def permit(self, epoch: int, first: int = 0, most: Optional[int] = None) -> int:
        """Return how many steps of an epoch may be taken; by then the ledger has them.

        Args:
            first: the step, from 0, with which it goes on.
            most: how many steps are wanted; left out, all from there on.

        An error of the ledger is raised on every worker.
        """
        wanted = self.plan.steps_per_epoch - first if most is None else most
        if self.plan.release is None:
            return wanted
        return self._workers.on_first(lambda: self._permit(epoch, first, wanted))

    def spent(self) -> Guarantee:
        """Return the guarantee of the releases in the ledger; on rank 0."""
        if self._ledger is None:
            return guarantee(self.plan)
        ledger = self._ledger.read()
        return guarantee(ledger.plan, ledger.entries, is_stopped=ledger.is_stopped)

    def stop(self) -> None:
        """Write down that the run ends because of its results, so that the rest of it counts."""
        if self.plan.release is not None:
            self._workers.on_first(lambda: self._file.stop())

    def entries(self) -> List[Dict[str, Any]]:
        """Return the written lines as plain values; on rank 0."""
        return [entry.to_dict() for entry in self._file.read().entries]

    def mark(self) -> Optional[LedgerMark]:
        """Return how far the ledger has come; on rank 0, None if no file keeps it."""
        return self._ledger.mark() if isinstance(self._ledger, LedgerFile) else None

    @property
    def _file(self) -> AnyLedger:
        assert self._ledger is not None  # only rank 0 of a run with a mechanism comes here
        return self._ledger

    def _open(self, open_ledger: Callable[[], AnyLedger]) -> None:
        self._ledger = open_ledger()

    def _known_scales(self) -> Optional[Tuple[float, ...]]:
        ledger = self._file.read()
        if ledger.plan.released.layer_scales is not None:
            return ledger.plan.released.layer_scales
        refuse_unaffordable(self.plan, ledger.entries)
        for entry in self.plan.scales_entries():
            self._file.append(entry)
        return None

    def _permit(self, epoch: int, first: int, wanted: int) -> int:
        goes_on = (epoch, first) == self._next
        if not goes_on:
            self._end = first + self._allowed(epoch, first)
        count = min(wanted, self._end - first)
        # One line counts a shuffled epoch, whatever the steps; it is written anew after a resume.
        if count and (self.plan.released.draws.by_chance or not goes_on):
            self._file.append(self.plan.entry(epoch, count, first))
        self._next = (epoch, first + count)
        return count

    def _allowed(self, epoch: int, first: int) -> int:
        """How many steps of an epoch the budget permits from one on, which may be repeated."""
        steps = self.plan.steps_per_epoch - first
        if self.plan.max_epsilon is None:
            return steps
        allowed = permitted_steps(self.plan, self._file.read().entries, epoch, first=first)
        if allowed < steps:
            logger.warning(
                "privacy.max_epsilon: %d of the %d steps of epoch %d fit into ε ≤ %g; the run "
                "ends there",
                allowed,
                steps,
                epoch + 1,
                self.plan.max_epsilon,
            )
        return allowed
