"""What a run may spend and what it has spent: its plan, its ledger, its budget."""

from __future__ import annotations

import logging
from typing import Optional, Sequence, Tuple

from edp_mx.accounting.budget import (
    committed_entries,
    permitted_steps,
    refuse_unaffordable,
)
from edp_mx.accounting.guarantee import Guarantee, guarantee
from edp_mx.accounting.ledger import LedgerFile, LedgerMark
from edp_mx.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.training.state import read_ledger_mark

logger = logging.getLogger(__name__)


class Spending:
    """Writes each release down before it is made, and permits none beyond the budget.

    The plan has z₀; its α may still be unknown until `complete`. Only the disk of rank 0 is read. A
    ledger that is gone, damaged or that of another run is refused.

    Guarantee: each line of the ledger is on disk before its release. An interrupted epoch is
    repeated and counted twice: the ledger may overstate what was released, never understate it.
    """

    def __init__(self, plan: Plan, workers: Workers, run: RunDirectory) -> None:
        self.plan = plan
        self._workers, self._run = workers, run
        self._ledger: Optional[LedgerFile] = None
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

    def permit(self, epoch: int) -> int:
        """Return how many steps of an epoch may be taken; by then the ledger has them.

        An error of the ledger is raised on every worker.
        """
        if self.plan.release is None:
            return self.plan.steps_per_epoch
        return self._workers.on_first(lambda: self._permit(epoch))

    def planned(self, first_epoch: Optional[int] = None) -> Guarantee:
        """Return the guarantee of the whole run, as far as its budget lets it go; on rank 0.

        Args:
            first_epoch: with which it goes on, from 0; what the ledger has of it counts besides.
        """
        if self._ledger is None:
            return guarantee(self.plan)
        spent = self._ledger.read().entries
        return guarantee(self.plan, committed_entries(self.plan, spent, first_epoch=first_epoch))

    def spent(self) -> Guarantee:
        """Return the guarantee of what the ledger says was released; on rank 0."""
        if self._ledger is None:
            return self.planned()
        return guarantee(self.plan, self._ledger.read().entries)

    def mark(self) -> Optional[LedgerMark]:
        """Return how far the ledger has come; on rank 0, None without a mechanism."""
        return None if self._ledger is None else self._ledger.mark()

    @property
    def _file(self) -> LedgerFile:
        assert self._ledger is not None  # only rank 0 of a run with a mechanism comes here
        return self._ledger

    def _open(self) -> None:
        run = self._run
        mark = read_ledger_mark(run.checkpoint) if run.checkpoint.exists() else None
        if run.has("layers") and not run.ledger.exists():
            raise UserError(
                f"{run.ledger} is missing, and without it nobody knows what the run has spent, so "
                "that it cannot be resumed; restore the ledger, or train into a new directory"
            )
        self._ledger = LedgerFile(run.ledger, self.plan, mark=mark)

    def _known_scales(self) -> Optional[Tuple[float, ...]]:
        ledger = self._file.read()
        assert ledger.plan.release is not None
        if ledger.plan.release.layer_scales is not None:
            return ledger.plan.release.layer_scales
        refuse_unaffordable(self.plan, ledger.entries)
        for entry in self.plan.scales_entries():
            self._file.append(entry)
        return None

    def _permit(self, epoch: int) -> int:
        steps = allowed = self.plan.steps_per_epoch
        if self.plan.max_epsilon is not None:
            allowed = permitted_steps(self.plan, self._file.read().entries, epoch)
        if allowed:
            self._file.append(self.plan.entry(epoch, allowed))
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
