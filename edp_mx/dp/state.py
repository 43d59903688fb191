"""The state of a run: numbers and named arrays in one file, nothing that executes when read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Optional, Type, TypeVar

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.dp.checkpoint_file import FACTS, newest_whole, write_checkpoint
from edp_mx.dp.weights import Parameters, set_weights, weights_of
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.npz import Arrays, read_arrays

_SCHEDULE = "m_schedule"  # what Nadam keeps beside the moments: the product of its momenta

S = TypeVar("S", bound="RunState")


@dataclass(frozen=True, eq=False)
class RunState:
    """A run after some steps; each kind of run adds its own facts or groups of arrays.

    `weights` are those of `kept` alone.
    """

    KIND: ClassVar[str]

    seconds: float
    weights: Arrays
    optimizer: Arrays

    @classmethod
    def of(cls: Type[S], model: gluon.Block, trainer: gluon.Trainer, **more: Any) -> S:
        """Return the state of a model and its trainer; `more` are this kind's own fields."""
        weights = weights_of(model, cls.kept(model, trainer))
        return cls(weights=weights, optimizer=optimizer_arrays(trainer), **more)

    @classmethod
    def kept(
        cls,
        model: gluon.Block,
        trainer: gluon.Trainer,  # noqa: ARG003 (of other kinds)
    ) -> Parameters:
        """Return the parameters whose values are kept, by name: all."""
        return model.collect_params()

    def restore(self, model: gluon.Block, trainer: gluon.Trainer, source: Path) -> None:
        """Restore the weights and the optimizer's state, if they are of this model."""
        set_weights(model, self.weights, str(source), self.kept(model, trainer))
        set_optimizer_arrays(trainer, self.optimizer, str(source))

    def write(self, path: Path) -> None:
        """Replace the file, whole or not at all, with a checksum; see `write_checkpoint`."""
        arrays = {f"{FACTS}/{name}": np.array(value) for name, value in self._facts().items()}
        for group in self._groups():
            members = getattr(self, group)
            arrays.update({f"{group}/{name}": array for name, array in members.items()})
        write_checkpoint(path, arrays)

    @classmethod
    def read(cls: Type[S], path: Path) -> S:
        """Read the file of `write`; refuse one that is missing, damaged or of another kind."""
        groups: Dict[str, Any] = {group: {} for group in (FACTS, *cls._groups())}
        for name, array in read_arrays(path, "a checkpoint").items():
            group, _, rest = name.partition("/")
            groups.setdefault(group, {})[rest] = array
        facts = {name: value.item() for name, value in groups.pop(FACTS).items()}
        try:
            return cls(**facts, **groups)
        except TypeError as error:
            raise UserError(f"{path} is not a checkpoint of {cls.KIND} ({error})") from error

    @classmethod
    def resume(cls: Type[S], path: Path, workers: Workers) -> Optional[S]:
        """Return rank 0's newest whole checkpoint on every worker; None if it has none at all.

        It is sent array by array.
        """
        found: List[S] = []

        def read() -> Optional[Dict[str, Any]]:
            newest = newest_whole(path)
            if newest is None:
                return None
            found.append(cls.read(newest))
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
        names = [f.name for f in fields(self) if f.name not in self._groups()]
        return {name: getattr(self, name) for name in names}


def _share(arrays: Arrays, group: str, workers: Workers) -> Arrays:
    """Rank 0's arrays on every worker; the arrays of the others are ignored."""
    kinds = workers.broadcast({name: (a.shape, a.dtype.name) for name, a in arrays.items()})
    shared: Arrays = {}
    for name in sorted(kinds):
        shape, dtype = kinds[name]
        mine = arrays[name] if workers.is_first else np.zeros(shape, dtype)
        array = mx.nd.array(np.reshape(mine, (-1,)), dtype=dtype)  # a scalar has no shape in MXNet
        workers.broadcast_array(array, f"{group}.{name}")
        shared[name] = array.asnumpy().reshape(shape)
    return shared


def optimizer_arrays(trainer: gluon.Trainer) -> Dict[str, np.ndarray]:
    """Return copies of the moments, `<parameter>/0` and `/1`, and of the number of updates `/n`."""
    states = trainer._updaters[0].states
    counts = trainer._optimizer._index_update_count
    arrays: Dict[str, np.ndarray] = {}
    for i, parameter in enumerate(trainer._params):
        if i in states:
            arrays[f"{parameter.name}/n"] = np.array(counts.get(i, 0), np.int64)
            for k, state in enumerate(_parts(states[i])):
                arrays[f"{parameter.name}/{k}"] = state.asnumpy().copy()
    if hasattr(trainer._optimizer, _SCHEDULE):
        arrays[_SCHEDULE] = np.array(trainer._optimizer.m_schedule)
    return arrays


def set_optimizer_arrays(
    trainer: gluon.Trainer, arrays: Dict[str, np.ndarray], source: str
) -> None:
    """Restore the arrays of `optimizer_arrays`, if they fit the trainer's parameters."""
    updater, optimizer = trainer._updaters[0], trainer._optimizer
    left = dict(arrays)
    for i, parameter in enumerate(trainer._params):
        if not any(name.startswith(f"{parameter.name}/") for name in left):
            continue
        state = optimizer.create_state_multi_precision(i, parameter.data())
        for k, part in enumerate(_parts(state)):
            value = left.pop(f"{parameter.name}/{k}", None)
            if value is None or value.shape != part.shape:
                raise UserError(f"{source} has no fitting moment {k} of {parameter.name}")
            part[:] = mx.nd.array(value, ctx=part.context, dtype=part.dtype)
        updater.states[i], updater.states_synced[i] = state, True
        optimizer._index_update_count[i] = int(left.pop(f"{parameter.name}/n", 0))
    if hasattr(optimizer, _SCHEDULE):
        optimizer.m_schedule = float(left.pop(_SCHEDULE, optimizer.m_schedule))
    if left:
        raise UserError(f"{source} has the moment {sorted(left)[0]} of no parameter")
    counts = optimizer._index_update_count.values()
    optimizer.num_update = max([optimizer.begin_num_update, *counts])


def _parts(state) -> tuple:
    """The arrays of one parameter's state: Adam has two, SGD none or one."""
    parts = state if isinstance(state, (tuple, list)) else (state,)
    return tuple(part for part in parts if part is not None)
