"""The trainer of weights whose gradients are made from their carriers' released ones."""

from __future__ import annotations

import hashlib
from typing import Any, Sequence

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.mechanism import Released
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.models.rgp import CarriedWeight
from edp_mx.runtime.distributed import Workers

CHECK_EVERY = 100  # steps


class CarriedTrainer(PrivateTrainer):
    """Updates the weights in place of their carriers, and then chooses the carriers anew.

    Both are post-processing of the noisy aggregate.

    Args:
        carried: the weights whose carriers are among the parameters of `flat`.
        workers: who are asked now and then whether they have the same carriers.
        settings: of `PrivateTrainer`.
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        carried: Sequence[CarriedWeight],
        workers: Workers,
        **settings: Any,
    ) -> None:
        updated = {p.name: p for layer in flat.layers for p in layer.parameters}
        for weight in carried:
            for carrier in weight.carriers:
                del updated[carrier.name]
            updated[weight.updated.name] = weight.updated
        super().__init__(flat=flat, updated=updated, **settings)
        self._carried, self._workers = carried, workers

    def step_private(self, released: Released) -> None:
        """See `PrivateTrainer`; the carriers are then of the next step."""
        super().step_private(released)
        self._flat.mark(is_fresh=False)  # the carriers' gradients are used too
        step = self._optimizer.num_update  # which a resumed run goes on with
        for weight in self._carried:
            weight.refresh(step=step)
        if self._workers.size > 1 and step % CHECK_EVERY == 1:
            self._workers.agree("the carriers of the gradients", self._digest())

    def _allreduce_grads(self) -> None:
        super()._allreduce_grads()
        for weight in self._carried:
            weight.updated.data()._fresh_grad = True  # as `FlatGradients.mark`
            weight.reconstruct()

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for weight in self._carried:
            for carrier in weight.carriers:
                digest.update(carrier.data().asnumpy().tobytes())
        return digest.hexdigest()[:16]
