"""A network whose gradient is whatever an audit wants, behind the real mechanism and trainer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Iterable, List, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.counting import count_as_published, count_what_holds
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.data.dealing import deal
from edp_mx.data.draws import Sampler
from edp_mx.errors import UserError
from edp_mx.privacy.clipping import Losses
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.ghost.clipping import GhostClipping
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import Mechanism, Released
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.norm_clipping import LoopClipping, NormClipping
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.runtime.distributed import Workers

DELTA = 1e-5  # of a plan whose ε nobody asks for


@dataclass(frozen=True)
class AuditedStep:
    """The step that is audited.

    Attributes:
        variant: published or calibrated.
        noise_multiplier: z.
        max_grad_norm: C.
        layer_scales: α, one per layer.
        adjacency: replace_one or zero_out.
        micro_batch_size: |M|: utterances of a micro-batch, or units per worker; the expected number
            under poisson.
        unit: what is clipped: micro_batch, utterance or user.
        utterances_per_user: of each user, all of which take part.
        micro_batches_per_worker: k, of unit micro_batch.
        clipping: loop or ghost.
        sampler: shuffle (every record is in every step) or poisson.
        sample_rate: about q, of poisson; so many records are made up that it comes out.
    """

    variant: str = "calibrated"
    noise_multiplier: float = 1.0
    max_grad_norm: float = 1.0
    layer_scales: Tuple[float, ...] = (1.0, 0.25)
    adjacency: str = "replace_one"
    micro_batch_size: int = 16
    unit: str = "micro_batch"
    utterances_per_user: int = 4
    micro_batches_per_worker: int = 1
    clipping: str = "loop"
    sampler: str = "shuffle"
    sample_rate: float = 0.5

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
        batch, places = self._sizes(num_workers)
        return Release(
            unit=self.unit,
            num_workers=num_workers,
            micro_batches_per_worker=self.micro_batches_per_worker,
            micro_batch_size=self.micro_batch_size,
            max_grad_norm=self.max_grad_norm,
            layer_scales=self.layer_scales,
            adjacency=self.adjacency,
            variant=self.variant,
            sampler=self.sampler,
            sample_rate=batch / places if self.sampler == "poisson" else 1.0,
        )

    def plan(self, num_workers: int, *, delta: float = DELTA) -> Plan:
        """The plan of one step."""
        return Plan(
            self.release(num_workers),
            noise_multiplier=self.noise_multiplier,
            decay=Decay(),
            epochs=1,
            delta=delta,
        )

    def claims(self, *, num_workers: int, delta: float) -> Tuple[Bound, Bound]:
        """ε of one step, as published and as it holds."""
        plan = self.plan(num_workers, delta=delta)
        entries = plan.entries()
        return count_as_published(plan, entries), count_what_holds(plan, entries)

    def dealt(self, workers: Workers) -> Sampler:
        """The real sampler over made-up records; shuffled, each is in each step."""
        batch, places = self._sizes(workers.size)
        users = np.repeat(np.arange(places), self.utterances_per_user)
        is_user = self.unit == "user"
        return deal(
            unit=self.unit,
            sampler=self.sampler,
            num_records=len(users) if is_user else places,
            batch_size=batch,
            rank=workers.rank,
            num_workers=workers.size,
            seed=0,
            micro_batches_per_worker=self.micro_batches_per_worker,
            users=users if is_user else None,
            max_utterances_per_user=self.utterances_per_user,
            adjacency=self.adjacency,
        )

    def _sizes(self, num_workers: int) -> Tuple[int, int]:
        """B, and of how many places it is drawn."""
        if not 0 < self.sample_rate <= 1:
            raise UserError(f"--sample-rate is {self.sample_rate}; it must be above 0, at most 1")
        batch = num_workers * self.micro_batches_per_worker * self.micro_batch_size
        return batch, round(batch / self.sample_rate) if self.sampler == "poisson" else batch


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
            self.register_child(
                gluon.nn.Dense(
                    1,
                    use_bias=False,
                    in_units=size,
                    weight_initializer="zeros",
                    prefix=f"audit_layer{k}_",
                )
            )

    def forward(self, *examples: mx.nd.NDArray) -> mx.nd.NDArray:
        """The losses (R,) of examples given layer by layer, each (R, size)."""
        losses = [layer(part) for layer, part in zip(self._children.values(), examples)]
        return mx.nd.add_n(*losses).reshape((-1,))  # (R,)


class ListenedMechanism(Mechanism):
    """A mechanism of which one can see what left this worker last.

    Attributes:
        sent: the flat message (P,) after clipping and noise.
    """

    sent: np.ndarray = np.zeros(0, np.float32)

    def privatise(self, chunks: Iterable[Losses], *, epoch: int) -> Released:
        """See `Mechanism.privatise`."""
        released = super().privatise(chunks, epoch=epoch)
        self.sent = self._flat.gradients().copy()  # (P,)
        return released


class Probe:
    """The real mechanism and the real trainer (plain SGD, rate 1) around a linear network.

    Args:
        workers: this worker among all.
        step: the audited settings.
        size: coordinates of each layer.
    """

    def __init__(self, workers: Workers, step: AuditedStep, *, size: int) -> None:
        plan = step.plan(workers.size)
        self.release = step.release(workers.size)
        self.network = LinearNetwork(len(step.layer_scales), size)
        self.network.initialize()
        layers = layers_of(self.network)
        flat = FlatGradients(layers)
        noise = NoiseStream.from_operating_system()
        self.fingerprint = noise.fingerprint
        self._step = step
        self.mechanism = ListenedMechanism(plan=plan, clipping=self._clipping(flat), noise=noise)
        self._trainer = PrivateTrainer(
            flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0}
        )
        self._parameters = [layer.parameters[0] for layer in layers]
        self._before = self.weights()

    def weights(self) -> List[np.ndarray]:
        """The weights, layer by layer, each (size,) float32."""
        return [parameter.data().asnumpy().ravel() for parameter in self._parameters]

    def released(
        self, examples: Sequence[np.ndarray], sizes: Optional[Sequence[int]] = None
    ) -> List[np.ndarray]:
        """One step: the aggregate of all workers, read from the new weights.

        Args:
            examples: the gradient of each example, layer by layer, each (R, size).
            sizes: of the units, which follow one another; left out, all examples are one
                micro-batch, or each a unit by itself.

        Returns:
            Layer by layer (size,) float32.
        """
        if sizes is None:
            rows = len(examples[0])
            sizes = [rows] if self.release.unit == "micro_batch" else [1] * rows
        released = self.mechanism.privatise(self.chunks(examples, sizes), epoch=0)
        self._trainer.step_private(released)
        before, self._before = self._before, self.weights()
        return [old - new for old, new in zip(before, self._before)]

    def chunks(self, examples: Sequence[np.ndarray], sizes: Sequence[int]) -> List[Losses]:
        """The losses of the units: all in one chunk for ghost clipping, else one by one.

        A unit is filled up with examples of zero, whose gradient is zero, to the largest's size.
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
        at_once = len(sizes) if self._step.clipping == "ghost" else 1
        return [
            partial(self._losses, [part[i : i + at_once] for part in filled])
            for i in range(0, len(sizes), at_once)
        ]

    def _losses(self, units: Sequence[np.ndarray]) -> mx.nd.NDArray:
        """Of some units, (U,); layer by layer (U, rows, size)."""
        count, rows, size = units[0].shape
        losses = self.network(
            *(mx.nd.array(part.reshape(-1, size)) for part in units)
        )  # (U · rows,)
        divisor = self.release.micro_batch_size if self.release.unit == "micro_batch" else 1
        return losses.reshape((count, rows)).sum(axis=1) / divisor

    def _clipping(self, flat: FlatGradients) -> NormClipping:
        step = self._step
        if step.clipping == "loop":
            return LoopClipping(
                flat=flat, max_grad_norm=step.max_grad_norm, layer_scales=step.layer_scales
            )
        return GhostClipping(
            flat=flat,
            network=self.network,
            max_grad_norm=step.max_grad_norm,
            layer_scales=step.layer_scales,
            chunk_size=1 << 20,
        )
