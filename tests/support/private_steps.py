"""Private steps of one of several workers: the real mechanism and trainer around a network."""

from dataclasses import replace

from support.examples import plan_with, release_with

from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.runtime import distributed


class Recording(Mechanism):
    """Keeps the first numbers of what left the worker."""

    def privatise(self, chunks, *, epoch):
        released = super().privatise(chunks, epoch=epoch)
        self.__dict__.setdefault("sent", []).append(self.clipping.flat.gradients()[:4000].copy())
        return released


class PrivateSteps:
    """A worker's steps with plain SGD; `release`: what differs from `examples.release_with`."""

    def __init__(self, flat, *, z=0.0, decay=None, noise=None, learning_rate=1.0, **release):
        self.workers, self.flat = distributed.start(), flat
        release = release_with(num_workers=self.workers.size, **release)
        noise = noise or NoiseStream.from_operating_system()
        plan = plan_with(release, z=z, decay=decay)
        self.mechanism = Recording(
            plan=replace(plan, gaussian=noise.gaussian),
            clipping=LoopClipping(flat=flat, release=release),
            noise=noise,
        )
        self.trainer = PrivateTrainer(
            flat=flat, optimizer="sgd", optimizer_params={"learning_rate": learning_rate}
        )

    def take(self, losses):
        """A step; the weights after it, layer by layer."""
        self.trainer.step_private(self.mechanism.privatise(losses, epoch=0))
        return self.weights()

    def weights(self):
        return [[p.data().asnumpy() for p in layer.parameters] for layer in self.flat.layers]

    def statistics(self):
        return self.mechanism.clipping.take_statistics()
