"""DP-SGD on one worker: its mean, its noise, and the ways around it that are closed."""

import mxnet as mx
import numpy as np
import pytest
from support.examples import (
    SCALES,
    WIDTH,
    Examples,
    clipped_sum_by_hand,
    gradient_by_hand,
    network_with,
    one_by_one,
    plan_with,
    release_with,
    tensors_of,
    weights_for,
)
from support.normality import normal

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping

SEED = {"seed": 11, "rank": 0}


class Step:
    """A network with examples, DP-SGD and, if wanted, the real trainer around it."""

    def __init__(self, generator, *, z=0.0, decay=None, noise=None, **release):
        self.weights = weights_for(generator)
        self.examples = Examples(
            generator.normal(size=(9, WIDTH)) * 3, generator.normal(size=(9, 1))
        )
        self.network, self.flat = network_with(self.weights)
        self.release = release_with(**release)
        self.clipping = LoopClipping(flat=self.flat, release=self.release)
        self.mechanism = Mechanism(
            plan=plan_with(self.release, z=z, decay=decay), clipping=self.clipping,
            noise=noise or NoiseStream.insecure(**SEED),
        )  # fmt: skip

    def privatised(self, indices, *, epoch=0):
        self.mechanism.privatise(one_by_one(self.network, self.examples, indices), epoch=epoch)
        return self.flat.gradients().copy()

    def by_hand(self, indices):
        """The clipped sum and the norms, in float64."""
        rows = zip(self.examples.inputs[indices], self.examples.targets[indices])
        gradients = [gradient_by_hand(self.weights, x, y) for x, y in rows]
        return clipped_sum_by_hand(gradients, scales=SCALES, max_grad_norm=1.0)


def normal_numbers(flat):
    """The stream's numbers of one step, a tensor each, from a stream of its own."""
    stream, numbers = NoiseStream.insecure(**SEED), np.zeros(flat.size, np.float32)
    for segment in flat.segments:  # a segment a stddev: SCALES has no equal neighbours
        numbers[segment] = normal(stream, segment.stop - segment.start)
    return tensors_of(flat, numbers)


@pytest.mark.parametrize("size", [4, 2.5, 9])
@pytest.mark.parametrize("z", [0.0, 1.3])
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_a_step_is_the_clipped_mean_and_its_noise(generator, size, z, adjacency):
    """With one worker: std κ C z α_k / |M|, whatever was drawn."""
    sampler = "poisson" if size == 2.5 else "shuffle"
    step = Step(generator, z=z, micro_batch_size=size, adjacency=adjacency, sampler=sampler,
                decay=Decay("exponential", 0.1))  # fmt: skip
    drawn = np.array([0, 3, 4, 5, 8])
    released = tensors_of(step.flat, step.privatised(drawn, epoch=2))
    expected, norms = step.by_hand(drawn)
    kappa, z_t = 1 if adjacency == "zero_out" else 2, z * np.exp(-0.2)
    for found, sums, numbers, scale in zip(released, expected, normal_numbers(step.flat), SCALES):
        stddev = kappa * z_t * scale / size
        for tensor, total, y in zip(found, sums, numbers):
            np.testing.assert_allclose(tensor, total / size + stddev * y, rtol=1e-5, atol=3e-6)
    statistics = step.mechanism.clipping.take_statistics()
    assert statistics.units == 5 and statistics.clipped == (norms > 1).sum()
    assert statistics.norm_sum == pytest.approx(norms.sum(), rel=1e-5)
    assert step.mechanism.clipping.take_statistics().units == 0


def test_an_empty_micro_batch_sends_its_noise(generator):
    network = mx.gluon.nn.Dense(100, in_units=1000, use_bias=False, prefix="wide_")
    network.initialize()
    flat = FlatGradients(layers_of(network))
    release = release_with(layer_scales=(1.0,), micro_batch_size=2.5, sampler="poisson")
    clipping = LoopClipping(flat=flat, release=release)
    mechanism = Mechanism(plan=plan_with(release, z=1.5), clipping=clipping,
                          noise=NoiseStream.from_operating_system())  # fmt: skip
    mechanism.privatise([], epoch=0).use(flat)
    deviation = flat.gradients().astype(np.float64).std() / (1.5 / 2.5)
    assert abs(deviation - 1) < 0.02  # 9 standard errors; rejects 2/3 and 3/2 by far
    assert mechanism.clipping.take_statistics().units == 0
