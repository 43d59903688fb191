"""What a run may spend and what it has spent: its plan, its ledger, its budget."""

from __future__ import annotations

import logging
from typing import Any, Dict, Optional, Sequence, Tuple

from edp_mx.dp.accounting.budget import permitted_steps, refuse_unaffordable
from edp_mx.dp.accounting.guarantee import Guarantee, guarantee
from edp_mx.dp.accounting.ledger import LedgerFile, LedgerMark
from edp_mx.dp.accounting.plan import Plan
from edp_mx.runs.evidence import Evidence
from edp_mx.runs.recount import guarantee_ahead
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.training.checkpoint_file import newest_whole, read_ledger_mark

logger = logging.getLogger(__name__)


class Spending:
    """Writes each release down before it is made, and permits none beyond the budget.

    The plan has z₀; its α may still be unknown until `complete`. Only the disk of rank 0 is read. A
    ledger that is gone, damaged or that of another run is refused.

    Guarantee: each line of the ledger is on disk before its release. What an interrupted run
    repeats is written down and counted again: the steps since the checkpoint, or of a shuffled
    epoch the whole, since a record may have been in any of them. The ledger may overstate what was
    released, never understate it.
    """

    def __init__(self, plan: Plan, workers: Workers, run: RunDirectory) -> None:
        self.plan = plan
        self._workers, self._run = workers, run
        self._ledger: Optional[LedgerFile] = None
        self._next, self._end = (-1, 0), 0  # the next step of an epoch, and where its steps end
        if plan.release is not None:
            workers.on_first(self._open)

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

    def planned(self, first_epoch: Optional[int] = None, first_step: int = 0) -> Guarantee:
        """Return the guarantee of the whole run, as far as its budget lets it go; on rank 0.

        Args:
            first_epoch: with which it goes on, from 0; what the ledger has of it counts besides.
            first_step: of that epoch, from 0.
        """
        spent = () if self._ledger is None else self._ledger.read().entries
        return guarantee_ahead(self.plan, spent, first_epoch=first_epoch, first_step=first_step)

    def spent(self) -> Guarantee:
        """Return the guarantee of what the ledger says was released; on rank 0."""
        if self._ledger is None:
            return self.planned()
        ledger = self._ledger.read()
        return guarantee(ledger.plan, ledger.entries, is_stopped=ledger.is_stopped)

    def stop(self) -> None:
        """Write down that the run ends because of what it shows, so that the rest of it counts."""
        if self.plan.release is not None:
            self._workers.on_first(lambda: self._file.stop())

    def end(self) -> Optional[Dict[str, Any]]:
        """Return what confirms the whole ledger; on rank 0, None without a mechanism."""
        chain = None if self._ledger is None else self._ledger.read().chain
        return None if chain is None else chain.end

    def mark(self) -> Optional[LedgerMark]:
        """Return how far the ledger has come; on rank 0, None without a mechanism."""
        return None if self._ledger is None else self._ledger.mark()

    @property
    def _file(self) -> LedgerFile:
        assert self._ledger is not None  # only rank 0 of a run with a mechanism comes here
        return self._ledger

    def _open(self) -> None:
        run = self._run
        checkpoint = newest_whole(run.checkpoint)
        mark = None if checkpoint is None else read_ledger_mark(checkpoint, is_checked=True)
        evidence = Evidence.of(run)
        evidence.refuse_absent()
        self._ledger = LedgerFile(run.ledger, self.plan, mark=mark)
        evidence.refuse_cut(self._ledger.read())

    def _known_scales(self) -> Optional[Tuple[float, ...]]:
        ledger = self._file.read()
        assert ledger.plan.release is not None
        if ledger.plan.release.layer_scales is not None:
            return ledger.plan.release.layer_scales
        refuse_unaffordable(self.plan, ledger.entries)
        for entry in self.plan.scales_entries():
            self._file.append(entry)
        return None

    def _permit(self, epoch: int, first: int, wanted: int) -> int:
        assert self.plan.release is not None
        goes_on = (epoch, first) == self._next
        if not goes_on:
            self._end = first + self._allowed(epoch, first)
        count = min(wanted, self._end - first)
        # One line counts a shuffled epoch, whatever the steps; it is written anew after a resume.
        if count and not (goes_on and self.plan.release.sampler == "shuffle"):
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
