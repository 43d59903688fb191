"""A network whose gradients an audit chooses, behind the real mechanism and trainer."""

from __future__ import annotations

from functools import partial
from typing import Iterable, List, Sequence

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.attacks.audit.audited_step import AuditedStep
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.clipping import Losses
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism, Released
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.trainer import PrivateTrainer


class LinearNetwork(gluon.Block):
    """Network whose loss of an example x is Σ_k ⟨w_k, x_k⟩, with one vector w_k per layer.

    The gradient for an example is the example itself, whatever the weights.
    """

    def __init__(self, num_layers: int, size: int) -> None:
        super().__init__(prefix="audit_")
        shared = {"use_bias": False, "in_units": size, "weight_initializer": "zeros"}
        for k in range(num_layers):
            self.register_child(gluon.nn.Dense(1, prefix=f"audit_layer{k}_", **shared))

    def forward(self, *examples: mx.nd.NDArray) -> mx.nd.NDArray:
        """Return the losses (R,) of examples given layer by layer, each (R, size)."""
        losses = [layer(part) for layer, part in zip(self._children.values(), examples)]
        return mx.nd.add_n(*losses).reshape((-1,))  # (R,)


class ListenedMechanism(Mechanism):
    """Mechanism that keeps the last message of this worker, (P,), after clipping and noise."""

    sent: np.ndarray = np.zeros(0, np.float32)

    def privatise(self, chunks: Iterable[Losses], *, epoch: int) -> Released:
        released = super().privatise(chunks, epoch=epoch)
        self.sent = self._flat.gradients().copy()  # (P,)
        return released


class Probe:
    """Linear network with the real mechanism and the real trainer (plain SGD, rate 1)."""

    def __init__(self, step: AuditedStep, *, size: int) -> None:
        self.release, plan = step.release, step.plan
        self.network = LinearNetwork(len(step.layer_scales), size)
        self.network.initialize()
        layers = layers_of(self.network)
        flat = FlatGradients(layers)
        noise = NoiseStream.from_operating_system(gaussian=plan.gaussian)
        self.fingerprint = noise.fingerprint
        self._takes_many = CLIPPINGS[plan.clipping].takes_many
        clipping = clipping_for(plan.clipping, self.release, flat, self.network, chunk_size=1 << 20)
        self.mechanism = ListenedMechanism(plan=plan, clipping=clipping, noise=noise)
        self._trainer = PrivateTrainer(
            flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0}
        )
        self._parameters = [layer.parameters[0] for layer in layers]
        self._before = self.weights()

    def weights(self) -> List[np.ndarray]:
        """Return the weights, layer by layer, each (size,) float32."""
        return [parameter.data().asnumpy().ravel() for parameter in self._parameters]

    def released(self, examples: Sequence[np.ndarray], sizes: Sequence[int]) -> List[np.ndarray]:
        """Take one step and return the aggregate of all workers, read from the new weights.

        Args:
            examples: the gradient of each example, layer by layer, each (R, size).
            sizes: of the units, which follow one another.

        Shapes: → one (size,) float32 per layer.
        """
        released = self.mechanism.privatise(self.chunks(examples, sizes), epoch=0)
        self._trainer.step_private(released)
        before, self._before = self._before, self.weights()
        return [old - new for old, new in zip(before, self._before)]

    def chunks(self, examples: Sequence[np.ndarray], sizes: Sequence[int]) -> List[Losses]:
        """Return the losses of the units: one chunk for ghost clipping, else one per unit.

        Each unit is padded to the size of the largest with examples whose gradient is zero.
        """
        sizes = [size for size in sizes if size]
        if not sizes:
            return []
        rows = max(sizes)
        places = np.concatenate([i * rows + np.arange(size) for i, size in enumerate(sizes)])
        filled = []
        for part in examples:
            whole = np.zeros((len(sizes) * rows, part.shape[1]), np.float32)  # (U · rows, size)
            whole[places] = part
            filled.append(whole.reshape(len(sizes), rows, -1))
        at_once = len(sizes) if self._takes_many else 1
        return [
            partial(self._losses, [part[i : i + at_once] for part in filled])
            for i in range(0, len(sizes), at_once)
        ]

    def _losses(self, units: Sequence[np.ndarray]) -> mx.nd.NDArray:
        """Return the losses (U,) of units given layer by layer, each (U, rows, size)."""
        count, rows, size = units[0].shape
        losses = self.network(*(mx.nd.array(x.reshape(-1, size)) for x in units))  # (U · rows,)
        divisor = self.release.micro_batch_size if self.release.clips.is_mean else 1
        return losses.reshape((count, rows)).sum(axis=1) / divisor
