"""The files of a private training: its ledger, and a checkpoint after each epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Optional

from mxnet import gluon

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.ledger import (
    LEDGER,
    LedgerFile,
    read_ledger,
    refuse_other,
    refuse_other_plan,
)
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.checkpoint_file import newest_mark
from edp_mx.dp.spending import AnyLedger, Spending, UnwrittenLedger
from edp_mx.dp.state import RunState
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import lock_folder


@dataclass(frozen=True, eq=False)
class PrivateState(RunState):
    """A private training after some whole epochs, and its ledger at that time."""

    KIND: ClassVar[str] = "a private training"

    epochs: int
    ledger_size: int
    ledger_digest: str


_kept: Dict[Path, Optional[int]] = {}  # the folders of this process, and the locks, to its end


class TrainingFolder:
    """The folder of a private training; without a path nothing is kept. Rank 0 alone writes."""

    def __init__(self, path: Optional[str]) -> None:
        self._path = None if path is None else Path(path)

    def open_ledger(self, plan: Plan) -> AnyLedger:
        """Open the ledger, which must be the checkpoint's if there is one."""
        if self._path is None:
            return UnwrittenLedger(plan)
        try:
            self._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UserError(
                f"folder={str(self._path)!r}: {error.strerror}; name another"
            ) from error
        if self._path.resolve() not in _kept:  # two processes would tear its ledger
            _kept[self._path.resolve()] = lock_folder(self._path)
        mark = newest_mark(self._path / "checkpoint.npz")
        return LedgerFile(self._path / LEDGER, plan, mark=mark)

    def spent(self, plan: Plan) -> List[Dict[str, Any]]:
        """Return the lines that a training has left there, as `Spending.entries` does.

        Raises:
            UserError: they are of another plan, by which no ε of theirs can be stated.
        """
        if self._path is None:
            return []
        for path in (self._path, *self._path.parents):
            if path.exists() and not path.is_dir():
                raise UserError(f"folder={str(self._path)!r}: {path} is a file; give a folder")
        mark = newest_mark(self._path / "checkpoint.npz")
        if mark is not None:
            refuse_other(self._path / LEDGER, mark)
        elif not (self._path / LEDGER).exists() or b"\n" not in (self._path / LEDGER).read_bytes():
            return []  # a crash may have left part of the head: nothing was released
        ledger = read_ledger(self._path / LEDGER)
        if not CLIPPINGS[ledger.plan.clipping].takes_many:
            # The loop may have taken the place of ghost clipping, which costs the same.
            ledger = replace(ledger, plan=replace(ledger.plan, clipping=plan.clipping))
        refuse_other_plan(self._path / LEDGER, ledger, plan)
        return [entry.to_dict() for entry in ledger.entries]

    def resume(self, net: gluon.Block, trainer: gluon.Trainer, workers: Workers) -> int:
        """Restore the newest checkpoint, and return how many epochs it has; 0 without one."""
        if self._path is None:
            return 0
        found = PrivateState.resume(self._path / "checkpoint.npz", workers)
        if found is None:
            return 0
        try:
            found.restore(net, trainer, self._path / "checkpoint.npz")
        except UserError as error:
            if set(found.weights) == set(net.collect_params()):
                raise
            raise UserError(
                f"{error}, or its blocks got other automatic names: give them a prefix, so that "
                "they have the same names at a second start in one process"
            ) from error
        return found.epochs

    def save(
        self, net: gluon.Block, trainer: gluon.Trainer, *, epochs: int, spending: Spending
    ) -> None:
        """Write a checkpoint after some whole epochs; on rank 0."""
        mark = spending.mark()
        if self._path is None or mark is None:
            return
        state = PrivateState.of(
            net,
            trainer,
            seconds=0.0,
            epochs=epochs,
            ledger_size=mark.size,
            ledger_digest=mark.digest,
        )
        state.write(self._path / "checkpoint.npz")
