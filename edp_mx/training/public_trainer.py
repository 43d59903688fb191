"""The trainer for text that is public: no privacy, one all-reduce per step."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional

import numpy as np

from edp_mx.privacy.factors import clip_factors
from edp_mx.privacy.flat import FlatGradients, sum_of_squares
from edp_mx.privacy.flat_trainer import FlatTrainer


class PublicTrainer(FlatTrainer):
    """Averages the flat gradients of all workers, clips their norm, updates.

    Args:
        flat: the network's gradients; its parameters are the ones that are trained.
        optimizer: a name that MXNet (or GluonNLP) knows.
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
        max_grad_norm: the averaged gradient is scaled down to this norm; None leaves it.
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        optimizer: str,
        optimizer_params: Dict[str, Any],
        max_grad_norm: Optional[float] = None,
    ) -> None:
        super().__init__(flat=flat, optimizer=optimizer, optimizer_params=optimizer_params)
        self._max_grad_norm = max_grad_norm

    def _allreduce_grads(self) -> None:
        """Called by `step`."""
        self._flat.refuse_stale()
        self._aggregate()
        if self._max_grad_norm is not None:
            gradients = self._flat.gradients()  # (P,), the sum or the mean: `_scale` knows
            norm = math.sqrt(sum_of_squares(gradients)) * self._scale
            factor = float(clip_factors(np.array(norm), max_norm=self._max_grad_norm))
            if factor != 1:
                gradients *= factor
            self._flat.put_gradients(gradients)
