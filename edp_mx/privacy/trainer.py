"""The Horovod trainer that privatises before the all-reduce."""

from __future__ import annotations

from typing import Any, Dict, Optional

from edp_mx.distributed import DistributedTrainer
from edp_mx.privacy.flat import FlatParameters
from edp_mx.privacy.mechanism import EDPSGD


class PrivateTrainer(DistributedTrainer):
    """Gluon's trainer over the flat arrays: one all-reduce and one optimizer call a step.

    Nothing but what the mechanism returned leaves the worker. Adam (or SGD) sees only the noisy
    aggregate, so that its state is post-processing.

    Args:
        flat: the network's weights and gradients.
        optimizer: a name that MXNet knows, "adam" or "sgd".
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
        mechanism: None trains without privacy (the paper's SGD column).

    Example (in the training loop)::

        with autograd.record():
            loss = model.loss(batch).sum() / micro_batch_size
        loss.backward()
        trainer.step_private(epoch=epoch)
    """

    def __init__(self, *, flat: FlatParameters, optimizer: str, optimizer_params: Dict[str, Any],
                 mechanism: Optional[EDPSGD]) -> None:
        super().__init__([flat.parameter], optimizer, optimizer_params, prefix="edp_mx")
        self.context = flat.context
        self._flat = flat
        self._mechanism = mechanism
        self._epoch = 0

    def step_private(self, *, epoch: int) -> None:
        """Privatises, aggregates, updates.

        Args:
            epoch: t, from 0; sets the noise.

        Raises:
            UserError: a gradient would be used twice, or a parameter would escape the clipping.
        """
        self._epoch = epoch
        self.step(1)  # the loss is a mean already

    def _allreduce_grads(self) -> None:
        """Called by `step`: the privatisation comes first, with one worker too."""
        self._flat.take_fresh()
        if self._mechanism is not None:
            gradients = self._flat.gradients()  # (P,)
            self._mechanism.privatise(gradients, epoch=self._epoch)
            self._flat.put_gradients(gradients)
        super()._allreduce_grads()  # Aggregate: 1/N Σ
