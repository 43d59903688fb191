"""The trainer that privatises before the all-reduce."""

from __future__ import annotations

from typing import Any, Dict, Optional

from edp_mx.errors import UserError
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.flat_trainer import FlatTrainer
from edp_mx.privacy.mechanism import Mechanism


class PrivateTrainer(FlatTrainer):
    """Horovod's trainer over the flat gradients: one all-reduce a step, after the privatisation.

    No gradient leaves the worker but what the mechanism returned. Adam (or SGD) sees only the noisy
    aggregate, so that its state is post-processing.

    Args:
        flat: the network's gradients; its parameters are the ones that are trained.
        optimizer: a name that MXNet knows, "adam" or "sgd".
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
        mechanism: None trains without privacy (the paper's SGD column).

    Attributes:
        mechanism: as given.

    Example (in the training loop)::

        with autograd.record():
            loss = model.loss(batch).sum() / micro_batch_size
        loss.backward()
        trainer.step_private(epoch=epoch)
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        optimizer: str,
        optimizer_params: Dict[str, Any],
        mechanism: Optional[Mechanism],
    ) -> None:
        super().__init__(flat=flat, optimizer=optimizer, optimizer_params=optimizer_params)
        self.mechanism = mechanism
        self._epoch = 0

    def step_private(self, *, epoch: int) -> None:
        """Privatises, aggregates, updates.

        Args:
            epoch: t, from 0; sets the noise.

        Raises:
            UserError: a gradient would be used twice, or a parameter would escape the clipping.
        """
        self._epoch = epoch
        super().step(1)  # the loss is a mean already

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refused: it knows no epoch, which sets the noise."""
        raise UserError("PrivateTrainer.step does not know the epoch: call step_private(epoch=…)")

    def allreduce_grads(self) -> None:
        """Refused: a gradient that has left the worker could be released a second time."""
        raise UserError(
            "PrivateTrainer.allreduce_grads would release one gradient twice: call "
            "step_private(epoch=…)"
        )

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refused: it would apply a gradient that was neither clipped nor noised."""
        raise UserError(
            "PrivateTrainer.update would apply the raw gradient: call step_private(epoch=…)"
        )

    def _allreduce_grads(self) -> None:
        """Called by `step`: the privatisation comes first, with one worker too."""
        self._flat.refuse_stale()
        if self.mechanism is not None:
            gradients = self._flat.gradients()  # (P,)
            self.mechanism.privatise(gradients, epoch=self._epoch)
            self._flat.put_gradients(gradients)
        self._aggregate()
