"""The ways around the privatisation are closed."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx import distributed
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import EDPSGD
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.trainer import PrivateTrainer


@pytest.fixture
def trainer_and_net():
    distributed.start()
    net = nn.Dense(1, in_units=3, use_bias=False, prefix="net_")
    net.initialize(mx.init.Zero())
    flat = FlatGradients(layers_of(net))
    release = Release(num_workers=1, micro_batch_size=2, max_grad_norm=0.1, layer_scales=(1.0,),
                      adjacency="replace_one", variant="calibrated")  # fmt: skip
    mechanism = EDPSGD(release=release, noise_multiplier=1e-6, decay=Decay(), flat=flat,
                       noise=NoiseStream.from_operating_system())  # fmt: skip
    trainer = PrivateTrainer(flat=flat, mechanism=mechanism, optimizer="sgd",
                             optimizer_params={"learning_rate": 1.0})  # fmt: skip
    return trainer, net


def backward(net):
    with autograd.record():
        loss = (100 * net(mx.nd.ones((1, 3)))).sum()
    loss.backward()


def test_a_private_step_moves_the_weights_by_the_clipping_norm(trainer_and_net):
    trainer, net = trainer_and_net
    backward(net)
    trainer.step_private(epoch=0)
    assert np.linalg.norm(net.weight.data().asnumpy()) == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("around", [
    lambda trainer: trainer.step(1), lambda trainer: trainer.update(1),
    lambda trainer: trainer.allreduce_grads()])  # fmt: skip
def test_gluon_s_own_ways_are_refused_and_change_nothing(trainer_and_net, around):
    trainer, net = trainer_and_net
    backward(net)
    with pytest.raises(UserError, match="call step_private"):
        around(trainer)
    assert (net.weight.data().asnumpy() == 0).all()


def test_one_gradient_trains_once(trainer_and_net):
    trainer, net = trainer_and_net
    backward(net)
    trainer.step_private(epoch=0)
    with pytest.raises(UserError, match="released only once"):
        trainer.step_private(epoch=0)
