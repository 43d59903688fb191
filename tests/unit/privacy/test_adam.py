"""Our Adam beside MXNet's own."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon

from edp_mx.privacy.adam import PIECE, Adam


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
