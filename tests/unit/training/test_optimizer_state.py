"""Moments and counts that are put back let an optimizer go on as if nothing had happened."""

import gluonnlp  # noqa: F401 (registers BERTAdam)
import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.gluon import nn

from edp_mx.errors import UserError
from edp_mx.training.state import optimizer_arrays, set_optimizer_arrays


def network(weights=None):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=4), nn.Dense(1, in_units=3))
    net.initialize(mx.init.Zero())
    for name, parameter in net.collect_params().items():
        if weights:
            parameter.set_data(mx.nd.array(weights[name]))
    return net


def trainer_of(net, optimizer):
    return gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05}, kvstore=None)


def steps(net, trainer, inputs):
    for x in inputs:
        with autograd.record():
            loss = (net(mx.nd.array(x)) - 1).square().mean()
        loss.backward()
        trainer.step(1)


def values(net):
    return {name: p.data().asnumpy() for name, p in net.collect_params().items()}


@pytest.mark.parametrize("optimizer", ["adam", "bertadam", "sgd"])
def test_an_interrupted_optimizer_goes_on_exactly(optimizer, generator):
    start = {name: generator.normal(size=p.shape) for name, p in network().collect_params().items()}
    inputs = generator.normal(size=(6, 5, 4))
    whole = network(start)
    steps(whole, trainer_of(whole, optimizer), inputs)

    first = network(start)
    trainer = trainer_of(first, optimizer)
    steps(first, trainer, inputs[:3])
    arrays = optimizer_arrays(trainer)
    second = network(values(first))
    trainer = trainer_of(second, optimizer)
    set_optimizer_arrays(trainer, arrays, "checkpoint")
    steps(second, trainer, inputs[3:])
    for name, value in values(whole).items():
        np.testing.assert_array_equal(value, values(second)[name])
    if optimizer != "sgd":  # which has nothing to remember: the test can fail
        third = network(values(first))
        steps(third, trainer_of(third, optimizer), inputs[3:])
        assert not np.array_equal(values(third)["net_dense0_weight"],
                                  values(whole)["net_dense0_weight"])  # fmt: skip


def test_arrays_of_another_network_are_refused(generator):
    net = network()
    trainer = trainer_of(net, "adam")
    steps(net, trainer, generator.normal(size=(1, 5, 4)))
    arrays = optimizer_arrays(trainer)
    fresh = trainer_of(network(), "adam")
    for changed in (
        {**arrays, "other/0": np.zeros(3)},
        {**arrays, "net_dense0_weight/0": np.zeros((2, 2))},
        {name: a for name, a in arrays.items() if name != "net_dense1_bias/1"},
    ):
        with pytest.raises(UserError, match="checkpoint.npz"):
            set_optimizer_arrays(fresh, changed, "checkpoint.npz")
