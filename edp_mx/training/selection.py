"""The weights that a run ends with: the last, or the best on validation."""

from __future__ import annotations

import math
from typing import Optional, Tuple

from mxnet import gluon

from edp_mx.dp.weights import set_weights, weights_of
from edp_mx.runtime.npz import Arrays
from edp_mx.training.config import TrainingConfig


class Selection:
    """Keeps the best weights on validation, and stops early, if that is configured.

    Both look at private data, which ε does not cover. By default both are off.
    """

    def __init__(self, model: gluon.Block, config: TrainingConfig) -> None:
        self._model = model
        self._keeps_best = config.checkpoint == "best_on_validation"
        self._patience = config.early_stop_patience
        self._best_cost, self._best_epoch = math.inf, 0
        self._best_weights: Optional[Arrays] = None

    def stops_after(self, epoch: int, cost: float) -> bool:
        """Note the validation cost of an epoch (less is better); return True at patience's end."""
        if cost < self._best_cost:
            self._best_cost, self._best_epoch = cost, epoch
            if self._keeps_best:
                self._best_weights = weights_of(self._model)
        return self.has_stopped(epoch)

    def has_stopped(self, epoch: int) -> bool:
        """Return whether patience was at its end after an epoch, from 0; -1 for none."""
        return 0 < self._patience <= epoch - self._best_epoch

    @property
    def standing(self) -> Tuple[float, int, Arrays]:
        """The least cost, its epoch, and the weights if they are kept, for a resumed run."""
        return self._best_cost, self._best_epoch, self._best_weights or {}

    def resume(self, best_cost: float, best_epoch: int, best: Arrays) -> None:
        """Go on from an earlier `standing`."""
        self._best_cost, self._best_epoch, self._best_weights = best_cost, best_epoch, best or None

    def restore(self) -> None:
        if self._best_weights is not None:
            set_weights(self._model, self._best_weights, "the best checkpoint")
