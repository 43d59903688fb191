"""Horovod's trainer over flat gradients: one all-reduce per step."""

from __future__ import annotations

from typing import Any, Dict

from edp_mx.privacy.adam import Adam
from edp_mx.privacy.flat import FlatGradients
from edp_mx.runtime.distributed import DistributedTrainer, allreduce_


class FlatTrainer(DistributedTrainer):
    """Base of the private and the public trainer, which override `_allreduce_grads`.

    Args:
        flat: the network's gradients; its parameters are the ones that are trained.
        optimizer: "adam" (our own), or a name that MXNet knows.
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
    """

    def __init__(
        self, *, flat: FlatGradients, optimizer: str, optimizer_params: Dict[str, Any]
    ) -> None:
        parameters = {p.name: p for layer in flat.layers for p in layer.parameters}
        if optimizer == "adam":
            super().__init__(parameters, Adam(**optimizer_params))
        else:
            super().__init__(parameters, optimizer, optimizer_params)
        self.context = flat.context
        self._flat = flat

    def _aggregate(self) -> None:
        """Average over the workers as the parent does, but in one piece.

        On Gloo that is the sum, and `_scale` has the 1/N.
        """
        if self._process_set.size() > 1:
            allreduce_(
                self._flat.array,
                average=not self._average_in_framework,
                name="edp_mx.gradients",
                postscale_factor=self._postscale_factor,
                process_set=self._process_set,
            )
