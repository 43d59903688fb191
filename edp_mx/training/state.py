"""The state of a training run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from mxnet import gluon

from edp_mx.dp.privacy.layers import digests_of
from edp_mx.dp.state import RunState
from edp_mx.dp.weights import Parameters
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

    @classmethod
    def kept(cls, model: gluon.Block, trainer: gluon.Trainer) -> Parameters:
        """Return those that training changes; the others are what the run started from."""
        updated = {parameter.name for parameter in trainer._params}
        return {
            name: parameter
            for name, parameter in model.collect_params().items()
            if parameter.grad_req != "null" or parameter.name in updated
        }

    @classmethod
    def hash_of_others(cls, model: gluon.Block, trainer: gluon.Trainer) -> str:
        """Return a SHA-256 of the parameters that are not kept, with their names."""
        kept = cls.kept(model, trainer)
        others = [each for name, each in model.collect_params().items() if name not in kept]
        return hashlib.sha256(repr(sorted(digests_of(others).items())).encode()).hexdigest()
