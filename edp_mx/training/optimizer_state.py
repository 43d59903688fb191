"""An optimizer's state as plain named arrays: nothing that executes when it is read."""

from __future__ import annotations

from typing import Dict

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError


def optimizer_arrays(trainer: gluon.Trainer) -> Dict[str, np.ndarray]:
    """Return a copy of the moments and of the numbers of updates.

    They are named `<parameter>/0`, `<parameter>/1` and `<parameter>/n`.

    Edge cases: empty before the first step.
    """
    states = trainer._updaters[0].states
    counts = trainer._optimizer._index_update_count
    arrays: Dict[str, np.ndarray] = {}
    for i, parameter in enumerate(trainer._params):
        if i in states:
            arrays[f"{parameter.name}/n"] = np.array(counts.get(i, 0), np.int64)
            for k, state in enumerate(_parts(states[i])):
                arrays[f"{parameter.name}/{k}"] = state.asnumpy().copy()
    return arrays


def set_optimizer_arrays(
    trainer: gluon.Trainer, arrays: Dict[str, np.ndarray], source: str
) -> None:
    """Restore what `optimizer_arrays` returned.

    Raises:
        UserError: an array is missing, unknown, or has another shape; names it and `source`.
    """
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
    if left:
        raise UserError(f"{source} has the moment {sorted(left)[0]} of no parameter")
    counts = optimizer._index_update_count.values()
    optimizer.num_update = max([optimizer.begin_num_update, *counts])


def _parts(state) -> tuple:
    """The arrays of one parameter's state: Adam has two, SGD none or one."""
    if state is None:
        return ()
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)
