"""Horovod's trainer over flat gradients: one all-reduce per step."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NoReturn, Optional

from mxnet import gluon

from edp_mx.dp.privacy.adam import Adam
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.mechanism import Released
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import DistributedTrainer, allreduce_


class PrivateTrainer(DistributedTrainer):
    """Aggregates and updates with released gradients only.

    Only what a mechanism returned leaves the worker. Adam (or SGD) sees only the noisy aggregate,
    so that its state is post-processing.

    Args:
        optimizer: "adam" (our own), or a name that MXNet (or GluonNLP) knows.
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
        updated: the parameters that are updated, by name, if these are not those of `flat`.

    Example (in the training loop)::

        released = mechanism.privatise(losses(batches, epoch=epoch, step=step), epoch=epoch)
        trainer.step_private(released)
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        optimizer: str,
        optimizer_params: Dict[str, Any],
        updated: Optional[Mapping[str, gluon.Parameter]] = None,
    ) -> None:
        flat_parameters = {p.name: p for layer in flat.layers for p in layer.parameters}
        parameters = dict(flat_parameters if updated is None else updated)
        if optimizer == "adam":
            super().__init__(parameters, Adam(**optimizer_params))
        else:
            super().__init__(parameters, optimizer, optimizer_params)
        self.context = flat.context
        self._flat = flat

    @property
    def parameters(self) -> List[gluon.Parameter]:
        """The parameters that are updated."""
        return list(self._params)

    def step_private(self, released: Released) -> None:
        """Aggregate the gradients of the workers and update the weights.

        Raises:
            UserError: the gradient was used before, or a raw one has taken its place.
        """
        released.use(self._flat)
        self._flat.mark(is_fresh=True)  # otherwise Gluon takes it for that of the last step
        super().step(1)  # the loss is a mean already

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> NoReturn:  # noqa: ARG002
        """Refuse: this would apply the raw gradient."""
        raise _refused("step would apply the raw gradient")

    def allreduce_grads(self) -> NoReturn:
        """Refuse: a gradient that has left the worker could be released a second time."""
        raise _refused("allreduce_grads would release one gradient twice")

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> NoReturn:  # noqa: ARG002
        """Refuse: this would apply a gradient that was neither clipped nor noised."""
        raise _refused("update would apply the raw gradient")

    def _allreduce_grads(self) -> None:
        """Average over the workers as the parent does, but in one piece; called by `step`.

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


def _refused(what: str) -> UserError:
    return UserError(f"PrivateTrainer.{what}: call step_private(released)")
