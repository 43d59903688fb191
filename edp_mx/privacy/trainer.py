"""The trainer of private gradients, which only aggregates and updates."""

from __future__ import annotations

from edp_mx.errors import UserError
from edp_mx.privacy.flat_trainer import FlatTrainer
from edp_mx.privacy.mechanism import Released


class PrivateTrainer(FlatTrainer):
    """Horovod's trainer over flat gradients: one all-reduce per step, of a released gradient.

    Only what a mechanism returned leaves the worker. Adam (or SGD) sees only the noisy aggregate,
    so that its state is post-processing.

    Args:
        flat: the network's gradients; its parameters are the ones that are trained.
        optimizer: a name that MXNet knows, "adam" or "sgd".
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.

    Example (in the training loop)::

        released = mechanism.privatise(losses(batches, epoch=epoch, step=step), epoch=epoch)
        trainer.step_private(released)
    """

    def step_private(self, released: Released) -> None:
        """Aggregate the gradients of the workers and update the weights.

        Args:
            released: what `privatise` returned; it can be used once.

        Raises:
            UserError: it was used before, or a raw gradient has taken its place.
        """
        released.use(self._flat)
        self._flat.mark(is_fresh=True)  # otherwise Gluon takes it for that of the last step
        super().step(1)  # the loss is a mean already

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refuse: this would apply the raw gradient."""
        raise UserError(
            "PrivateTrainer.step would apply the raw gradient: call step_private(released)"
        )

    def allreduce_grads(self) -> None:
        """Refuse: a gradient that has left the worker could be released a second time."""
        raise UserError(
            "PrivateTrainer.allreduce_grads would release one gradient twice: call "
            "step_private(released)"
        )

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refuse: this would apply a gradient that was neither clipped nor noised."""
        raise UserError(
            "PrivateTrainer.update would apply the raw gradient: call step_private(released)"
        )

    def _allreduce_grads(self) -> None:
        """Called by `step`, also with one worker."""
        self._aggregate()
