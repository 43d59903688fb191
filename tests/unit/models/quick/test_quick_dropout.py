"""Our Dropout: rate, scale, independence, the same mask backwards, and nothing outside training."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from mxnet.gluon import nn
from scipy import stats

from edp_mx.models.quick import quicken
from edp_mx.models.quick.layers import Dropout


def net_of(rate, *, hybrid=True, copies=1):
    net = nn.HybridSequential()
    net.add(*(nn.Dropout(rate) for _ in range(copies)))
    quicken(net, mx.cpu())
    assert all(type(child) is Dropout for child in net)
    if hybrid:
        net.hybridize(static_alloc=True)
    return net


def masks(net, shape, *, seed=None, **record):
    """Forwards on ones and backwards from ones."""
    if seed is not None:
        mx.random.seed(seed)
    x = mx.nd.ones(shape)
    x.attach_grad()
    with autograd.record(**record):
        y = net(x)
    y.backward()
    return y.asnumpy(), x.grad.asnumpy()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("hybrid", [False, True])
def test_rate_and_scale_and_the_same_mask_backwards(rate, hybrid):
    forward, backward = masks(net_of(rate, hybrid=hybrid), (50, 40, 100), seed=1)
    assert (forward == backward).all()
    lost = (forward == 0).sum()
    assert abs(lost - rate * forward.size) < 5 * (forward.size * rate * (1 - rate)) ** 0.5
    np.testing.assert_allclose(forward[forward > 0], 1 / (1 - rate), rtol=1e-6)


def test_a_mask_is_a_function_of_the_seed():
    net = net_of(0.5, copies=2)  # of two layers, each with its own
    first, again, other = (masks(net, (64, 64), seed=s)[0] for s in (3, 3, 4))
    assert (first == again).all()
    assert abs(np.corrcoef(first.ravel() > 0, other.ravel() > 0)[0, 1]) < 0.1
    after = masks(net, (64, 64))[0]  # and the next call has the next
    assert (after != other).any()


def test_two_layers_and_neighbours_are_independent():
    net = net_of(0.5, copies=2)
    mx.random.seed(5)
    x = mx.nd.ones((400, 500))
    with autograd.record():
        first = net[0](x)
        second = net[1](x)
    kept = (first.asnumpy() > 0).ravel(), (second.asnumpy() > 0).ravel()
    pairs = [(kept[0], kept[1]), *((kept[0][:-k], kept[0][k:]) for k in (1, 2, 3, 64, 500, 4096))]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) * len(one) ** 0.5 < 5
    runs = np.packbits(kept[0].reshape(-1, 8), axis=1).ravel()  # words of eight neighbours
    assert stats.chisquare(np.bincount(runs, minlength=256)).pvalue > 1e-6


@pytest.mark.parametrize("hybrid", [False, True])
def test_outside_training_nothing_is_lost_forwards_or_backwards(hybrid, generator):
    net = net_of(0.5, hybrid=hybrid)
    forward, backward = masks(net, (30, 30), train_mode=False)
    assert (forward == 1).all() and (backward == 1).all()
    x = mx.nd.array(generator.normal(size=(3, 4)))
    assert (net(x).asnumpy() == x.asnumpy()).all()


def test_two_recorded_passes_keep_their_masks_apart():
    net, x = net_of(0.5), mx.nd.ones((40, 40))
    grads = []
    inputs = [x.copy(), x.copy()]
    for array in inputs:
        array.attach_grad()
    with autograd.record():
        outputs = [net(array) for array in inputs]
    for output, array in zip(reversed(outputs), reversed(inputs)):
        output.backward()
        grads.append(array.grad.asnumpy())
    for output, grad in zip(reversed(outputs), grads):
        assert (output.asnumpy() == grad).all()
    assert (grads[0] != grads[1]).any()


def test_a_rate_of_zero_is_the_identity_and_no_operator():
    assert "edp_dropout" not in str(net_of(0.0)(mx.sym.var("x")).tojson())
    assert (masks(net_of(0.0), (3, 3))[0] == 1).all()


def test_a_shared_mask_is_refused():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5, axes=(1,)))
    with pytest.raises(ValueError, match="shares its mask"):
        quicken(net, mx.cpu())
