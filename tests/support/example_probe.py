"""`attacks.probe` for DP-SGD: gradients of one's own choice behind its mechanism and trainer."""

from __future__ import annotations

from dataclasses import replace

import mxnet as mx
import numpy as np

from edp_mx.accounting.decay import Decay
from edp_mx.attacks.bounds import ErrorCounts, mu_from_errors
from edp_mx.attacks.probe import AuditedStep, LinearNetwork
from edp_mx.privacy.clipping import LoopClipping
from edp_mx.privacy.dp_sgd import DPSGD
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.trainer import PrivateTrainer

BLOCK = 16  # coordinates of a layer in which one worker moves


class ExampleStep(AuditedStep):
    """A step in which each example is clipped."""

    def release(self, num_workers):
        return replace(super().release(num_workers), clips="example")


class ListenedDPSGD(DPSGD):
    """DP-SGD, of which one can see what left this worker last."""

    def privatise(self, gradients, *, epoch):
        super().privatise(gradients, epoch=epoch)
        self.sent = gradients.copy()


class ExampleProbe:
    """As `Probe`: linear losses, whose gradient for an example is the example itself."""

    def __init__(self, workers, step, *, size):
        self.release = step.release(workers.size)
        self._network = LinearNetwork(len(step.layer_scales), size)
        self._network.initialize()
        layers = layers_of(self._network)
        flat = FlatGradients(layers)
        noise = NoiseStream.from_operating_system()
        self.fingerprint = noise.fingerprint
        self.clipping = LoopClipping(flat=flat, max_grad_norm=step.max_grad_norm,
                                     layer_scales=step.layer_scales)  # fmt: skip
        self.mechanism = ListenedDPSGD(
            release=self.release, noise_multiplier=step.noise_multiplier, decay=Decay(),
            flat=flat, noise=noise, clipping=self.clipping,
        )  # fmt: skip
        self._trainer = PrivateTrainer(flat=flat, mechanism=self.mechanism, optimizer="sgd",
                                       optimizer_params={"learning_rate": 1.0})  # fmt: skip
        self._parameters = [layer.parameters[0] for layer in layers]
        self._before = self.weights()

    def weights(self):
        return [parameter.data().asnumpy() for parameter in self._parameters]

    def released(self, examples):
        """The aggregate of one step, layer by layer; `examples`: layer by layer (drawn, size)."""
        inputs = [mx.nd.array(part) for part in examples] if len(examples[0]) else []
        drawn = len(examples[0])
        self.clipping.clip(
            [lambda i=i: self._network(*(part[i : i + 1] for part in inputs)) for i in range(drawn)]
        )
        self._trainer.step_private(epoch=0)
        before, self._before = self._before, self.weights()
        return [old - new for old, new in zip(before, self._before)]


def attack(workers, step, *, slots, against, draws, significance):
    """A1 for absent examples: μ at least, and the mean of ⟨Δ, e⟩ in both worlds.

    A worker holds `slots` audited examples, each far beyond C along a direction e of its own and
    there or not (as Poisson sampling would have it), and `against` others that pull each the other
    way in every step. To any one of them the rest is data that does not change its own e. The
    observer says "with" above a threshold that the first quarter of what it sees sets.
    """
    total = slots * workers.size
    probe = ExampleProbe(workers, step, size=BLOCK * total)
    signs = np.where(np.arange(BLOCK) % 2 == 0, 1.0, -1.0) / np.sqrt(BLOCK)
    directions = np.kron(np.eye(total), signs)  # (N · slots, size)
    mine = directions[workers.rank * slots :][:slots]
    far, layer = 1e4 * step.max_grad_norm, int(np.argmax(step.layer_scales))
    seen = ([], [])
    for turn in range(draws * 2 // total):
        worlds = (np.arange(total) + turn) % 2
        there = mine[worlds[workers.rank * slots :][:slots] == 1]
        rows = far * np.concatenate([there, *[-mine] * against])  # (drawn, size)
        examples = [rows * (k == layer) for k in range(len(step.layer_scales))]
        for value, world in zip(directions @ probe.released(examples)[layer], worlds):
            seen[world].append(float(value))
    means = [float(np.mean(part)) for part in seen]
    first = [part[: len(part) // 4] for part in seen]
    threshold = np.mean([np.mean(part) for part in first])
    without, with_it = (np.array(part[len(part) // 4 :]) for part in seen)
    counts = ErrorCounts(
        false_positives=int((without > threshold).sum()), negatives=len(without),
        false_negatives=int((with_it <= threshold).sum()), positives=len(with_it),
    )  # fmt: skip
    return {"mu": mu_from_errors(counts, significance=significance), "means": means}
