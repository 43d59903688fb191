"""A model's weights: in a file of plain named arrays, and those that a run ends with."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Mapping, Optional, Tuple

import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.files import whole_file
from edp_mx.runtime.npz import Arrays, read_arrays, write_npz
from edp_mx.training.config import TrainingConfig


def weights_of(model: gluon.Block) -> Arrays:
    """Return a copy of all parameters, frozen ones too, by name."""
    return {
        name: parameter.data().asnumpy().copy()
        for name, parameter in model.collect_params().items()
    }


def set_weights(model: gluon.Block, weights: Arrays, source: str) -> None:
    """Overwrite all parameters, if the weights are theirs; nothing is changed otherwise.

    Raises:
        UserError: one is missing, unknown, of another shape or type, or not finite.
    """
    parameters = model.collect_params()
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


def save_weights(model: gluon.Block, path: Path) -> None:
    """Write all parameters to a `.npz`, whole or not at all."""
    write_arrays(path, weights_of(model))


def load_weights(model: gluon.Block, path: Path) -> None:
    """Read what `save_weights` wrote."""
    set_weights(model, read_arrays(path, "a file of weights"), str(path))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compress: bool = False) -> None:
    """Write a `.npz`, whole or not at all."""
    with whole_file(path) as file:
        write_npz(file, arrays, compress=compress)


class Selection:
    """Keeps the best weights on validation, and stops early, if that is configured.

    Both look at private data, which ε does not cover. By default both are off.
    """

    def __init__(self, model: gluon.Block, config: TrainingConfig) -> None:
        self._model = model
        self._keeps_best = config.checkpoint == "best_on_validation"
        self._patience = config.early_stop_patience
        self._best_ser, self._best_epoch = math.inf, 0
        self._best_weights: Optional[Arrays] = None

    def stops_after(self, epoch: int, ser: float) -> bool:
        """Note the validation SER of an epoch; return True when patience is at its end."""
        if ser < self._best_ser:
            self._best_ser, self._best_epoch = ser, epoch
            if self._keeps_best:
                self._best_weights = weights_of(self._model)
        return self.has_stopped(epoch)

    def has_stopped(self, epoch: int) -> bool:
        """Return whether patience was at its end after an epoch, from 0; -1 for none."""
        return 0 < self._patience <= epoch - self._best_epoch

    @property
    def standing(self) -> Tuple[float, int, Arrays]:
        """The best score, its epoch, and the weights if they are kept: what a resumed run needs."""
        return self._best_ser, self._best_epoch, self._best_weights or {}

    def resume(self, best_ser: float, best_epoch: int, best: Arrays) -> None:
        """Go on from what `standing` was."""
        self._best_ser, self._best_epoch, self._best_weights = best_ser, best_epoch, best or None

    def restore(self) -> None:
        if self._best_weights is not None:
            set_weights(self._model, self._best_weights, "the best checkpoint")
