"""The budget of a run and the ε spent so far, with the ledger of its run directory."""

from __future__ import annotations

from typing import Any, Dict, Optional

from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.checkpoint_file import newest_mark
from edp_mx.dp.spending import Spending
from edp_mx.runs.ledger_evidence import Evidence
from edp_mx.runs.recount import guarantee_ahead
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers


class RunSpending(Spending):
    """The spending of a run. Only the disk of rank 0 is read.

    A ledger that is gone, damaged or of another run is refused.
    """

    def __init__(self, plan: Plan, workers: Workers, run: RunDirectory) -> None:
        super().__init__(plan, workers, lambda: _opened(plan, run))

    def planned(self, first_epoch: Optional[int] = None, first_step: int = 0) -> Guarantee:
        """Return the guarantee of the whole run, as far as its budget lets it go; on rank 0.

        Args:
            first_epoch: with which it goes on, from 0; what the ledger has of it counts besides.
            first_step: of that epoch, from 0.
        """
        if self.plan.release is None:
            return guarantee_ahead(self.plan)
        ledger = self._file.read()  # whose plan has α, where that is known
        return guarantee_ahead(
            ledger.plan, ledger.entries, first_epoch=first_epoch, first_step=first_step
        )

    def end(self) -> Optional[Dict[str, Any]]:
        """Return the mark of the whole ledger, on rank 0; None without a mechanism."""
        return self._file.read().chain.end if self.plan.release else None


def _opened(plan: Plan, run: RunDirectory) -> LedgerFile:
    """The ledger of a run, new or where its checkpoint and the files beside it leave it."""
    mark = newest_mark(run.checkpoint)
    evidence = Evidence.of(run)
    evidence.refuse_absent()
    ledger = LedgerFile(run.ledger, plan, mark=mark)
    evidence.refuse_cut(ledger.read())
    return ledger
