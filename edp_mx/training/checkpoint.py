"""A model's weights in a file: plain named arrays, nothing that executes when it is read."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence

import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.runtime.files import whole_file

Arrays = Dict[str, np.ndarray]


def weights_of(model: gluon.Block) -> Arrays:
    """Return a copy of all parameters, frozen ones too, by name."""
    return {
        name: parameter.data().asnumpy().copy()
        for name, parameter in model.collect_params().items()
    }


def set_weights(model: gluon.Block, weights: Arrays, source: str) -> None:
    """Overwrite all parameters; refuse weights that are missing, unknown or of another shape."""
    parameters = model.collect_params()
    for name in sorted(set(parameters) ^ set(weights)):
        known = "lacks the parameter" if name in parameters else "has the unknown parameter"
        raise UserError(f"{source} {known} {name}: it belongs to another model configuration")
    for name, parameter in parameters.items():
        if tuple(parameter.shape) != weights[name].shape:
            raise UserError(
                f"{source}: {name} has shape {weights[name].shape}, but the model needs "
                f"{tuple(parameter.shape)}"
            )
        parameter.set_data(weights[name])


def save_weights(model: gluon.Block, path: Path) -> None:
    """Write all parameters to a `.npz`, whole or not at all."""
    write_arrays(path, weights_of(model))


def load_weights(model: gluon.Block, path: Path) -> None:
    """Read what `save_weights` wrote."""
    set_weights(model, read_arrays(path, "a file of weights"), str(path))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Write a `.npz`, whole or not at all."""
    archive = io.BytesIO()  # a zip file that a full disk cuts off cannot be closed in peace
    (np.savez_compressed if compress else np.savez)(archive, **arrays)
    with whole_file(path) as file:
        file.write(archive.getbuffer())


def read_arrays(
    path: Path,
    kind: str,
    *,
    only: Optional[Sequence[str]] = None,
    advice: str = "",
) -> Arrays:
    """Read a `.npz`; nothing in it is executed.

    Args:
        kind: what the file should be, for the message.
        only: names of the arrays to read, as far as they are there; all by default.
        advice: what to do if the file is missing or torn, for the message.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            wanted = archive.files if only is None else [n for n in only if n in archive.files]
            return {name: archive[name] for name in wanted}
    except FileNotFoundError as error:
        raise UserError(
            f"there is no {path}: {advice or 'the run did not get that far'}"
        ) from error
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(
            f"{path} is torn or not {kind} ({error}){advice and f'; {advice}'}"
        ) from error
