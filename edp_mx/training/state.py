"""Where a run stands: numbers and named arrays in one file, nothing that executes when read."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Optional, Type, TypeVar

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.accounting.ledger import LedgerMark
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers
from edp_mx.training.checkpoint import Arrays, read_arrays, set_weights, weights_of, write_arrays
from edp_mx.training.optimizer_state import optimizer_arrays, set_optimizer_arrays

_FACTS = "facts"
_MARK = (f"{_FACTS}/ledger_size", f"{_FACTS}/ledger_digest")
S = TypeVar("S", bound="RunState")


@dataclass(frozen=True, eq=False)
class RunState:
    """A run after some steps; each kind of run adds its own facts or groups of arrays.

    Attributes:
        seconds: spent on these steps.
        weights: the parameters, by name.
        optimizer: what `optimizer_arrays` returned.
    """

    KIND: ClassVar[str]

    seconds: float
    weights: Arrays
    optimizer: Arrays

    @classmethod
    def of(cls: Type[S], model: gluon.Block, trainer: gluon.Trainer, **more: Any) -> S:
        """Return where a model and its trainer stand now.

        Args:
            more: the fields that this kind of run adds, and `seconds`.
        """
        return cls(weights=weights_of(model), optimizer=optimizer_arrays(trainer), **more)

    def restore(self, model: gluon.Block, trainer: gluon.Trainer, source: Path) -> None:
        """Put the weights and the optimizer's state back.

        Raises:
            UserError: the arrays are those of another model; names `source`.
        """
        set_weights(model, self.weights, str(source))
        set_optimizer_arrays(trainer, self.optimizer, str(source))

    def write(self, path: Path) -> None:
        """Replace the file, whole or not at all."""
        arrays = {f"{_FACTS}/{name}": np.array(value) for name, value in self._facts().items()}
        for group in self._groups():
            members = getattr(self, group)
            arrays.update({f"{group}/{name}": array for name, array in members.items()})
        write_arrays(path, arrays)

    @classmethod
    def read(cls: Type[S], path: Path) -> S:
        """Read what `write` wrote.

        Raises:
            UserError: the file is missing, torn, or of another kind.
        """
        groups: Dict[str, Any] = {group: {} for group in (_FACTS, *cls._groups())}
        for name, array in read_arrays(path, "a checkpoint").items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = array
        facts = {name: value.item() for name, value in groups.pop(_FACTS).items()}
        try:
            return cls(**facts, **groups)
        except TypeError as error:
            raise UserError(f"{path} is not a checkpoint of {cls.KIND} ({error})") from error

    @classmethod
    def resume(cls: Type[S], path: Path, workers: Workers) -> Optional[S]:
        """Return rank 0's checkpoint on every worker; None if it has none.

        It is sent array by array, since it may be large.

        Raises:
            UserError: rank 0's file is torn or of another kind.
        """
        found: List[S] = []

        def read() -> Optional[Dict[str, Any]]:
            if not path.exists():
                return None
            found.append(cls.read(path))
            return found[0]._facts()

        facts = workers.on_first(read)
        if facts is None or workers.size == 1:
            return found[0] if found else None
        groups: Dict[str, Any] = {
            group: _share(getattr(found[0], group) if found else {}, group, workers)
            for group in cls._groups()
        }
        return cls(**facts, **groups)

    @classmethod
    def _groups(cls) -> List[str]:
        """The fields that hold named arrays."""
        return [f.name for f in fields(cls) if f.type == "Arrays"]

    def _facts(self) -> Dict[str, Any]:
        """All other fields."""
        names = [f.name for f in fields(self) if f.name not in self._groups()]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class TrainingState(RunState):
    """A training run after some whole epochs.

    Attributes:
        epochs: done.
        best_ser, best_epoch, best: `Selection.standing`.
        average: `WeightAverage.values`, if an average is kept.
        ledger_size, ledger_digest: how far the ledger had come, see `ledger.LedgerMark`; 0 and ""
            without a mechanism.
    """

    KIND = "a training run"

    epochs: int
    best_ser: float
    best_epoch: int
    best: Arrays = field(default_factory=dict)
    average: Arrays = field(default_factory=dict)
    ledger_size: int = 0
    ledger_digest: str = ""


def read_ledger_mark(path: Path) -> LedgerMark:
    """Read how far the ledger had come when a checkpoint was written, without its weights.

    Raises:
        UserError: the file is torn, or was written by edp_mx 0.1, which confirmed no ledger.
    """
    found = read_arrays(path, "a checkpoint", only=_MARK)
    if len(found) < len(_MARK):
        raise UserError(
            f"{path} was written by edp_mx 0.1 and does not say how far its ledger had come; it "
            "cannot be resumed by this version, so train anew from its config.yaml"
        )
    size, digest = (found[name] for name in _MARK)
    return LedgerMark(int(size), str(digest))


def _share(arrays: Arrays, group: str, workers: Workers) -> Arrays:
    """Rank 0's arrays on every worker; what the others give is not looked at."""
    kinds = workers.broadcast({name: (a.shape, a.dtype.name) for name, a in arrays.items()})
    shared: Arrays = {}
    for name in sorted(kinds):
        shape, dtype = kinds[name]
        mine = arrays[name] if workers.is_first else np.zeros(shape, dtype)
        array = mx.nd.array(np.reshape(mine, (-1,)), dtype=dtype)  # a scalar has no shape in MXNet
        workers.broadcast_array(array, f"{group}.{name}")
        shared[name] = array.asnumpy().reshape(shape)
    return shared
