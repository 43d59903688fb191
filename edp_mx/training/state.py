"""The state of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field

from edp_mx.dp.state import RunState
from edp_mx.runtime.npz import Arrays


@dataclass(frozen=True, eq=False)
class TrainingState(RunState):
    """A training run after some whole epochs, and perhaps some steps of the next.

    Attributes:
        steps: of the epoch that was begun.
        epoch_seconds: that these steps took; `seconds` are those of the whole epochs.
        so_far: what the epoch's log adds up over them, by worker: the losses `loss` (N,) and the
            clipping statistics `clipping` (N, 4); empty after a whole epoch.
        best_cost, best_epoch, best: `Selection.standing`.
        average: `WeightAverage.values`, if an average is kept.
        ledger_size, ledger_digest: see `ledger.LedgerMark`; 0 and "" without a mechanism.
    """

    KIND = "a training run"

    epochs: int
    best_cost: float
    best_epoch: int
    best: Arrays = field(default_factory=dict)
    average: Arrays = field(default_factory=dict)
    so_far: Arrays = field(default_factory=dict)
    steps: int = 0
    epoch_seconds: float = 0.0
    ledger_size: int = 0
    ledger_digest: str = ""
