"""The update of one worker, with and without a cut norm, by hand."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.errors import UserError
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.trainer import PublicTrainer
from edp_mx.runtime import distributed


def update(weights, inputs, max_grad_norm):
    """What one step of SGD with learning rate 1 takes off the weights."""
    distributed.start()
    net = nn.Dense(1, in_units=weights.shape[1], prefix="net_")
    net.initialize()
    net.weight.set_data(mx.nd.array(weights))
    trainer = PublicTrainer(
        flat=FlatGradients(layers_of(net)),
        optimizer="sgd",
        optimizer_params={"learning_rate": 1.0},
        max_grad_norm=max_grad_norm,
    )
    with autograd.record():
        loss = (0.5 * net(mx.nd.array(inputs)).square()).mean()
    loss.backward()
    before = net.weight.data().asnumpy(), net.bias.data().asnumpy()
    trainer.step(1)
    with pytest.raises(UserError):
        trainer.step(1)  # no gradient is used twice
    return before[0] - net.weight.data().asnumpy(), before[1] - net.bias.data().asnumpy()


@pytest.mark.parametrize("max_grad_norm", [None, 1e-3, 1e3])
def test_the_norm_over_all_parameters_is_cut(max_grad_norm, generator):
    weights, inputs = generator.normal(size=(1, 5)), generator.normal(size=(7, 5))
    outputs = inputs @ weights.T  # (7, 1)
    gradients = [(outputs * inputs).mean(0), outputs.mean(0)]
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    factor = 1 if max_grad_norm is None else min(1, max_grad_norm / norm)
    for seen, gradient in zip(update(weights, inputs, max_grad_norm), gradients):
        np.testing.assert_allclose(seen.ravel(), factor * gradient, rtol=1e-4, atol=5e-7)
