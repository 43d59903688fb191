"""Our LayerNorm and our maximum beside float64, NumPy's and Gluon's own."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.models import clc_layers
from edp_mx.models.quick import quicken
from edp_mx.models.quick.layers import FirstMax, LayerNorm
from edp_mx.models.quick.library import load_operators

load_operators()


def slow_gradients(x, gamma, g, eps):
    """Row by row in float64: the Jacobian of the definition, by its matrix."""
    x, gamma, g = (np.asarray(v, np.float64) for v in (x, gamma, g))
    d = x.shape[1]
    dx, normal = np.zeros_like(x), np.zeros_like(x)
    for r, row in enumerate(x):
        centred = row - row.mean()
        root = np.sqrt((centred**2).mean() + eps)
        normal[r] = centred / root
        by_centred = np.eye(d) / root - np.outer(centred, centred) / (d * root**3)
        dx[r] = (g[r] * gamma) @ by_centred @ (np.eye(d) - 1 / d)
    return dx, (g * normal).sum(0), g.sum(0)


@given(st.integers(1, 300), st.integers(2, 40), st.sampled_from([1e-12, 1e-5, 0.1]),
       st.integers(0, 2**32 - 1))  # fmt: skip
def test_gradients_are_those_of_the_definition(rows, width, eps, seed):
    generator = np.random.default_rng(seed)
    x, g = (generator.normal(1, 2, (rows, width)).astype(np.float32) for _ in range(2))
    gamma, beta = generator.normal(size=(2, width)).astype(np.float32)
    arrays = [mx.nd.array(value) for value in (x, gamma, beta)]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        y = mx.nd.edp_layer_norm(*arrays, eps=repr(eps))
    y.backward(mx.nd.array(g))
    out, by_gamma, by_beta = (array.grad.asnumpy() for array in arrays)
    expected = slow_gradients(x, gamma, g, eps)
    # a row whose numbers lie close together is divided by little
    root = np.sqrt(x.astype(np.float64).var(1) + eps)[:, None]
    assert (abs(out - expected[0]) <= 1e-4 * (1 + abs(g * gamma).max()) / root**2 + 1e-4).all()
    scale = 1e-4 * rows * (1 + abs(g).max()) / np.minimum(root.min(), 1)
    assert abs(by_gamma - expected[1]).max() <= scale
    assert abs(by_beta - expected[2]).max() <= scale


def made(*, is_ours, shape, hybrid, frozen=()):
    """Value and gradients of a Dense between two norms, the second of them read twice."""
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.LayerNorm(in_channels=shape[-1], epsilon=1e-12),
                nn.Dense(shape[-1], in_units=shape[-1], flatten=False),
                nn.LayerNorm(in_channels=shape[-1]))  # fmt: skip
    net.initialize(mx.init.Normal(0.5))
    drawn = np.random.default_rng(5)
    for parameter in net.collect_params().values():
        parameter.set_data(mx.nd.array(drawn.normal(size=parameter.shape)))
    if is_ours:
        quicken(net, mx.cpu())
        assert type(net[0]) is type(net[2]) is LayerNorm
    for name in frozen:
        net.collect_params()[name].grad_req = "null"
    if hybrid:
        net.hybridize(static_alloc=True)
    x = mx.nd.array(drawn.normal(size=shape))
    x.attach_grad()
    for _ in range(2):  # the second time from what was kept of the first
        with autograd.record():
            first = net(x)
            loss = (first * first.sin()).sum()
        loss.backward()
    grads = {n: p.grad().asnumpy() for n, p in net.collect_params().items() if n not in frozen}
    return {**grads, "x": x.grad.asnumpy(), "value": net(x).asnumpy()}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("shape", [(3, 8), (5, 7, 8), (1, 1, 4), (70, 30, 16)])
@pytest.mark.parametrize("frozen", [(), ("net_layernorm0_gamma", "net_layernorm1_beta")])
def test_the_same_as_gluons_own(hybrid, shape, frozen):
    settings = {"shape": shape, "hybrid": hybrid, "frozen": frozen}
    ours, gluons = made(is_ours=True, **settings), made(is_ours=False, **settings)
    assert ours.keys() == gluons.keys() and len(ours) == 8 - len(frozen)
    np.testing.assert_allclose(ours["value"], gluons["value"], atol=1e-5)
    for name, value in ours.items():
        scale = max(1e-3, abs(gluons[name]).max())
        np.testing.assert_allclose(value / scale, gluons[name] / scale, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("hybrid", [False, True])
def test_one_array_may_be_read_by_many(hybrid, generator):
    """From some number of readers on MXNet has gradients added in place, if it is told nothing."""

    class Fan(nn.HybridBlock):
        def __init__(self, is_ours):
            super().__init__(prefix="fan_")
            with self.name_scope():
                self.norms = nn.HybridSequential()
                self.norms.add(*(nn.LayerNorm(in_channels=6) for _ in range(20)))
            self.initialize()
            if is_ours:
                quicken(self, mx.cpu())

        def hybrid_forward(self, F, x):
            x = F.sin(x)
            return F.add_n(*((k + 1) * F.cos(norm(x)) for k, norm in enumerate(self.norms)))

    grads, values = [], generator.normal(size=(5, 6))
    for is_ours in (True, False):
        net, x = Fan(is_ours), mx.nd.array(values)
        assert isinstance(net.norms[0], LayerNorm) == is_ours
        if hybrid:
            net.hybridize(static_alloc=True)
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        grads.append(x.grad.asnumpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-4, atol=1e-4)
    assert abs(grads[1]).max() > 1


def test_another_axis_is_refused():
    net = nn.HybridSequential()
    net.add(nn.LayerNorm(axis=1, in_channels=4))
    with pytest.raises(ValueError, match="not the last axis"):
        quicken(net, mx.cpu())


class Holder(mx.gluon.HybridBlock):
    def __init__(self, axis, *, is_ours):
        super().__init__()
        self.child = clc_layers.FirstMax(axis)
        if is_ours:
            quicken(self, mx.cpu())
            assert type(self.child) is FirstMax

    def hybrid_forward(self, F, values):
        return self.child(values)


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("is_hybrid", [True, False])
@given(shape=st.tuples(*3 * [st.integers(1, 20)]), axis=st.integers(0, 2), kinds=st.integers(1, 9),
       seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_the_first_of_the_largest_has_the_gradient(is_ours, is_hybrid, shape, axis, kinds, seed):
    generator = np.random.default_rng(seed)
    values = generator.integers(-kinds, kinds, shape).astype(np.float32)  # with ties
    net = Holder(axis, is_ours=is_ours)
    if is_hybrid:
        net.hybridize(static_alloc=True)
    x = mx.nd.array(values)
    x.attach_grad()
    with autograd.record():
        y = net(x)
    heads = generator.normal(size=y.shape).astype(np.float32)
    y.backward(mx.nd.array(heads))
    assert (y.asnumpy() == values.max(axis=axis)).all()
    expected = np.zeros_like(values)
    places = np.expand_dims(values.argmax(axis=axis), axis)
    np.put_along_axis(expected, places, np.expand_dims(heads, axis), axis)
    assert (x.grad.asnumpy() == expected).all()


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_what_is_no_number_is_not_lost(place):
    values = np.array([[3.0], [1.0], [9.0], [-np.inf]], np.float32)
    values[place] = np.nan
    assert np.isnan(Holder(0, is_ours=True)(mx.nd.array(values)).asnumpy()).all()
