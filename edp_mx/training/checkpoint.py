"""A model's weights in a file: plain named arrays, nothing that executes when it is read."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Dict

import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.runtime.files import whole_file


def weights_of(model: gluon.Block) -> Dict[str, np.ndarray]:
    """A copy of all parameters, frozen ones too, by name."""
    return {
        name: parameter.data().asnumpy().copy()
        for name, parameter in model.collect_params().items()
    }


def set_weights(model: gluon.Block, weights: Dict[str, np.ndarray], source: str) -> None:
    """Overwrites all parameters.

    Raises:
        UserError: a parameter is missing, unknown, or has another shape; names it and `source`.
    """
    parameters = model.collect_params()
    for name in sorted(set(parameters) ^ set(weights)):
        known = "lacks the parameter" if name in parameters else "has the unknown parameter"
        raise UserError(f"{source} {known} {name}: it belongs to another model configuration")
    for name, parameter in parameters.items():
        if tuple(parameter.shape) != weights[name].shape:
            raise UserError(
                f"{source}: {name} has shape {weights[name].shape}, the model wants "
                f"{tuple(parameter.shape)}"
            )
        parameter.set_data(weights[name])


def save_weights(model: gluon.Block, path: Path) -> None:
    """Writes all parameters to a `.npz`, whole or not at all."""
    archive = io.BytesIO()  # a zip file that a full disk cuts off cannot be closed in peace
    np.savez(archive, **weights_of(model))
    with whole_file(path) as file:
        file.write(archive.getbuffer())


def load_weights(model: gluon.Block, path: Path) -> None:
    """Reads what `save_weights` wrote.

    Raises:
        UserError: the file is missing, torn, or of another model.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            weights = {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: the run did not get as far as a checkpoint") from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is torn or not a file of weights ({error})") from error
    set_weights(model, weights, str(path))
