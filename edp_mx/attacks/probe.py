"""A network whose gradient is whatever an audit wants, behind the real mechanism and trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.accounting.bound import Bound, count_as_published, count_what_holds
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.distributed import Workers
from edp_mx.errors import UserError
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import EDPSGD
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.trainer import PrivateTrainer


@dataclass(frozen=True)
class AuditedStep:
    """The step that is audited.

    Attributes:
        variant: published or calibrated.
        noise_multiplier: z.
        max_grad_norm: C.
        layer_scales: α, one a layer.
        adjacency: replace_one or zero_out.
        micro_batch_size: |M|.
    """

    variant: str = "calibrated"
    noise_multiplier: float = 1.0
    max_grad_norm: float = 1.0
    layer_scales: Tuple[float, ...] = (1.0, 0.25)
    adjacency: str = "replace_one"
    micro_batch_size: int = 16

    def release(self, num_workers: int) -> Release:
        """What the accountant is told.

        Raises:
            UserError: an impossible number, or no noise to audit.
        """
        if not 0 < self.noise_multiplier < float("inf"):
            raise UserError(
                f"--noise-multiplier is {self.noise_multiplier}; an audit needs noise, so it must "
                "be finite and above 0"
            )
        return Release(
            num_workers=num_workers,
            micro_batch_size=self.micro_batch_size,
            max_grad_norm=self.max_grad_norm,
            layer_scales=self.layer_scales,
            adjacency=self.adjacency,
            variant=self.variant,
        )

    def claims(self, *, num_workers: int, delta: float) -> Tuple[Bound, Bound]:
        """ε of one step, as published and as it holds."""
        z, decay = self.noise_multiplier, Decay()
        return (
            count_as_published(noise_multiplier=z, decay=decay, epochs=1, delta=delta),
            count_what_holds(
                release=self.release(num_workers),
                noise_multiplier=z,
                decay=decay,
                epochs=1,
                delta=delta,
            ),
        )


class LinearNetwork(gluon.Block):
    """Layers of one vector w_k each; the loss of an example x is Σ_k ⟨w_k, x_k⟩.

    Its gradient for an example is the example itself, whatever the weights.

    Args:
        num_layers: L.
        size: coordinates of each layer.
    """

    def __init__(self, num_layers: int, size: int) -> None:
        super().__init__(prefix="audit_")
        for k in range(num_layers):
            self.register_child(_Vector(size, prefix=f"audit_layer{k}_"))

    def forward(self, *examples: mx.nd.NDArray) -> mx.nd.NDArray:
        """The losses (M,) of examples given layer by layer, each (M, size)."""
        losses = [layer(part) for layer, part in zip(self._children.values(), examples)]
        return mx.nd.add_n(*losses)  # (M,)


class _Vector(gluon.Block):
    """One layer: ⟨w, x⟩ for each row x."""

    def __init__(self, size: int, *, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self.weight = self.params.get("weight", shape=(size,), init=mx.init.Zero())

    def forward(self, examples: mx.nd.NDArray) -> mx.nd.NDArray:
        return mx.nd.dot(examples, self.weight.data())  # (M,)


class ListenedMechanism(EDPSGD):
    """Algorithm 1, of which one can see what left this worker last.

    Attributes:
        sent: the flat message (P,) after clipping and noise.
    """

    sent: np.ndarray = np.zeros(0, np.float32)

    def privatise(self, gradients: np.ndarray, *, epoch: int) -> None:
        """See `EDPSGD.privatise`."""
        super().privatise(gradients, epoch=epoch)
        self.sent = gradients.copy()


class Probe:
    """The real mechanism and the real trainer (plain SGD, rate 1) around a linear network.

    Args:
        workers: this worker among all.
        step: the audited settings.
        size: coordinates of each layer.
    """

    def __init__(self, workers: Workers, step: AuditedStep, *, size: int) -> None:
        self.release = step.release(workers.size)
        network = LinearNetwork(len(step.layer_scales), size)
        network.initialize()
        layers = layers_of(network)
        flat = FlatGradients(layers)
        noise = NoiseStream.from_operating_system()
        self.fingerprint = noise.fingerprint
        self.mechanism = ListenedMechanism(
            release=self.release,
            noise_multiplier=step.noise_multiplier,
            decay=Decay(),
            flat=flat,
            noise=noise,
        )
        self._trainer = PrivateTrainer(
            flat=flat,
            mechanism=self.mechanism,
            optimizer="sgd",
            optimizer_params={"learning_rate": 1.0},
        )
        self._network = network
        self._parameters = [layer.parameters[0] for layer in layers]
        self._before = self.weights()

    def weights(self) -> List[np.ndarray]:
        """The weights, layer by layer, each (size,) float32."""
        return [parameter.data().asnumpy() for parameter in self._parameters]

    def released(self, examples: Sequence[np.ndarray]) -> List[np.ndarray]:
        """One step on a micro-batch: the aggregate of all workers, read from the new weights.

        Args:
            examples: the gradient of each example, layer by layer, each (M, size).

        Returns:
            Layer by layer (size,) float32.
        """
        inputs = [mx.nd.array(part) for part in examples]
        with autograd.record():
            loss = self._network(*inputs).sum() / len(examples[0])  # mean over the micro-batch
        loss.backward()
        self._trainer.step_private(epoch=0)
        before, self._before = self._before, self.weights()
        return [old - new for old, new in zip(before, self._before)]
