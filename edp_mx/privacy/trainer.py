"""The trainer of private gradients: all that it does is to aggregate and to update."""

from __future__ import annotations

from edp_mx.errors import UserError
from edp_mx.privacy.flat_trainer import FlatTrainer
from edp_mx.privacy.mechanism import Released


class PrivateTrainer(FlatTrainer):
    """Horovod's trainer over the flat gradients: one all-reduce a step, of what may be released.

    No gradient leaves the worker but what a mechanism returned. Adam (or SGD) sees only the noisy
    aggregate, so that its state is post-processing.

    Args:
        flat: the network's gradients; its parameters are the ones that are trained.
        optimizer: a name that MXNet knows, "adam" or "sgd".
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.

    Example (in the training loop)::

        released = mechanism.privatise(losses(batches, epoch=epoch, step=step), epoch=epoch)
        trainer.step_private(released)
    """

    def step_private(self, released: Released) -> None:
        """Aggregate and updates.

        Args:
            released: what `privatise` returned; it can be used once.

        Raises:
            UserError: it was used before, or a raw gradient lies in its place.
        """
        released.use(self._flat)
        self._flat.mark(is_fresh=True)  # else Gluon takes it for the last step's
        super().step(1)  # the loss is a mean already

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refused: it would apply the raw gradient."""
        raise UserError(
            "PrivateTrainer.step would apply the raw gradient: call step_private(released)"
        )

    def allreduce_grads(self) -> None:
        """Refused: a gradient that has left the worker could be released a second time."""
        raise UserError(
            "PrivateTrainer.allreduce_grads would release one gradient twice: call "
            "step_private(released)"
        )

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:  # noqa: ARG002
        """Refused: it would apply a gradient that was neither clipped nor noised."""
        raise UserError(
            "PrivateTrainer.update would apply the raw gradient: call step_private(released)"
        )

    def _allreduce_grads(self) -> None:
        """Called by `step`, with one worker too."""
        self._aggregate()
