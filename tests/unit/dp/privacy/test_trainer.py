"""The ways around the privatisation are closed; our Adam, and the update of one worker, by hand."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.gluon import nn
from support.examples import plan_with, release_with

from edp_mx.dp.privacy.adam import PIECE, Adam
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.errors import UserError
from edp_mx.runtime import distributed


class Parts:
    """A trainer, its network, and the mechanism of Algorithm 1."""

    def __init__(self, units=1):
        distributed.start()
        self.units = units
        self.net = nn.Dense(1, in_units=3, use_bias=False, prefix="net_")
        self.net.initialize(mx.init.Zero())
        self.flat = FlatGradients(layers_of(self.net))
        release = release_with(unit="micro_batch", micro_batch_size=2, max_grad_norm=0.1,
                               micro_batches_per_worker=units, layer_scales=(1.0,),
                               adjacency="replace_one")  # fmt: skip
        self.clipping = LoopClipping(flat=self.flat, release=release)
        self.mechanism = Mechanism(plan=plan_with(release, z=1e-6), clipping=self.clipping,
                                   noise=NoiseStream.from_operating_system())  # fmt: skip
        self.trainer = PrivateTrainer(flat=self.flat, optimizer="sgd",
                                      optimizer_params={"learning_rate": 1.0})  # fmt: skip

    def losses(self):
        return (100 * self.net(mx.nd.ones((1, 3)))).sum()

    def backward(self):
        with autograd.record():
            loss = self.losses()
        loss.backward()

    def privatise(self):
        return self.mechanism.privatise(self.units * [self.losses], epoch=0)

    @property
    def weight(self):
        return self.net.weight.data().asnumpy()


@pytest.fixture(params=[1, 3])
def parts(request):
    """With one unit, whose gradient stays where `backward` left it, and with several."""
    return Parts(request.param)


def test_a_private_step_moves_the_weights_by_the_clipping_norm(parts):
    parts.trainer.step_private(parts.privatise())
    assert np.linalg.norm(parts.weight) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("around", [
    lambda trainer: trainer.step(1), lambda trainer: trainer.update(1),
    lambda trainer: trainer.allreduce_grads()])  # fmt: skip
def test_gluon_s_own_ways_are_refused_and_change_nothing(parts, around):
    parts.backward()
    with pytest.raises(UserError, match="call step_private"):
        around(parts.trainer)
    parts.privatise()
    with pytest.raises(UserError, match="call step_private"):
        around(parts.trainer)
    assert (parts.weight == 0).all()


def test_what_was_released_trains_once(parts):
    released = parts.privatise()
    parts.trainer.step_private(released)
    before = parts.weight
    with pytest.raises(UserError, match="released (only )?once"):
        parts.trainer.step_private(released)
    parts.flat.mark(is_fresh=True)
    with pytest.raises(UserError, match="released (only )?once"):
        parts.trainer.step_private(released)
    assert (parts.weight == before).all()


def raw(parts):
    released = parts.privatise()
    parts.backward()
    return released


@pytest.mark.parametrize("made, message", [
    (raw, "raw"),
    (lambda parts: (parts.privatise(), parts.privatise())[0], "released (only )?once"),
    (lambda parts: Parts().privatise(), "released (only )?once"),
], ids=["raw", "before another step", "of another network"])  # fmt: skip
def test_what_is_not_this_step_s_release_is_refused(parts, made, message):
    released = made(parts)
    with pytest.raises(UserError, match=message):
        parts.trainer.step_private(released)
    assert (parts.weight == 0).all()
    parts.trainer.step_private(parts.privatise())
    assert np.linalg.norm(parts.weight) == pytest.approx(0.1, rel=1e-4)


def test_a_clipped_sum_without_noise_is_nothing_that_the_trainer_takes(parts):
    clipped = parts.clipping.clip([parts.losses])
    with pytest.raises(AttributeError):
        parts.trainer.step_private(clipped)
    assert (parts.weight == 0).all()


def steps(optimizer, weight, gradients):
    """The weight after each gradient, and the state at the end."""
    weight = mx.nd.array(weight)
    state = optimizer.create_state(0, weight)
    after = []
    for gradient in gradients:
        optimizer.update(0, weight, mx.nd.array(gradient), state)
        after.append(weight.asnumpy().copy())
    return after, [part.asnumpy() for part in state]


@pytest.mark.parametrize("shape", [(1,), (3, 5), (7, 2, 3), (PIECE + 1_001,)])
@pytest.mark.parametrize("settings", [{}, {"wd": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.5},
                                      {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.1}])  # fmt: skip
def test_it_steps_as_mxnets_own(shape, settings, generator):
    weight = generator.normal(size=shape)
    gradients = generator.normal(size=(4, *shape))
    ours = steps(Adam(learning_rate=0.01, **settings), weight, gradients)
    theirs = steps(mx.optimizer.Adam(learning_rate=0.01, **settings), weight, gradients)
    for one, other in zip(ours[0] + ours[1], theirs[0] + theirs[1]):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)


def test_weights_that_a_prediction_has_reordered_are_updated_in_their_order(generator):
    """oneDNN keeps a weight in another order in memory after a prediction."""
    inputs = mx.nd.array(generator.normal(size=(16, 64)))
    drawn = generator.normal(size=(64, 64))
    ends = []
    for optimizer in (Adam(learning_rate=0.1), mx.optimizer.Adam(learning_rate=0.1)):
        net = gluon.nn.Dense(64, in_units=64)
        net.initialize()
        net.weight.set_data(mx.nd.array(drawn))
        net.hybridize(static_alloc=True)
        trainer = gluon.Trainer(net.collect_params(), optimizer, kvstore=None)
        for _ in range(3):
            with autograd.predict_mode():
                net(inputs).wait_to_read()
            with autograd.record():
                loss = net(inputs).square().sum()
            loss.backward()
            trainer.step(1)
        ends.append(net(inputs).asnumpy())
    np.testing.assert_allclose(*ends, rtol=1e-4, atol=1e-4)
