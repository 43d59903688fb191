"""A network's weights, and files of plain named arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, Optional

import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import whole_file
from edp_mx.runtime.npz import Arrays, read_arrays, write_npz

Parameters = Mapping[str, gluon.Parameter]


def weights_of(model: gluon.Block, of: Optional[Parameters] = None) -> Arrays:
    """Return a copy of these parameters of a model, by name; of all by default, frozen ones too."""
    parameters = model.collect_params() if of is None else of
    return {name: values.data().asnumpy() for name, values in parameters.items()}


def set_weights(
    model: gluon.Block, weights: Arrays, source: str, of: Optional[Parameters] = None
) -> None:
    """Overwrite these parameters (all by default), if the weights are theirs.

    Nothing is changed otherwise.

    Raises:
        UserError: one is missing, unknown, of another shape or type, or not finite.
    """
    parameters = model.collect_params() if of is None else of
    for name in sorted(set(parameters) ^ set(weights)):
        known = "lacks the parameter" if name in parameters else "has the unknown parameter"
        raise UserError(f"{source} {known} {name}: it belongs to another model configuration")
    for name, parameter in parameters.items():
        given, needed = weights[name], (tuple(parameter.shape), np.dtype(parameter.dtype))
        if (given.shape, given.dtype) != needed:
            raise UserError(
                f"{source}: {name} has shape {given.shape} and type {given.dtype}, but the model "
                f"needs {needed[0]} and {needed[1]}"
            )
        if not np.isfinite(given).all():
            raise UserError(f"{source}: {name} is not finite; the file is damaged, restore it")
    for name, parameter in parameters.items():
        overwrite(parameter, weights[name])


def broadcast_weights(model: gluon.Block, workers: Workers) -> None:
    """Give every worker rank 0's parameters, frozen ones too."""
    parameters = model.collect_params()
    workers.agree("the model's parameters", sorted((n, p.shape) for n, p in parameters.items()))
    for name in sorted(parameters):
        workers.broadcast_array(parameters[name].data(), f"weights.{name}")


def save_weights(model: gluon.Block, path: Path) -> None:
    """Write all parameters to a `.npz`, whole or not at all."""
    write_arrays(path, weights_of(model))


def load_weights(model: gluon.Block, path: Path) -> None:
    """Read the file that `save_weights` wrote."""
    set_weights(model, read_arrays(path, "a file of weights"), str(path))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Write a `.npz`, whole or not at all."""
    with whole_file(path) as file:
        write_npz(file, arrays, compress=compress)
