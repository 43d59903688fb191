"""Layers, their flat gradients, and the norms of these."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

from edp_mx.dp.privacy import flat as module
from edp_mx.dp.privacy.flat import CHUNK, FlatGradients, sum_of_squares
from edp_mx.dp.privacy.layers import Layer, layers_of
from edp_mx.errors import UserError


def network(*blocks):
    net = nn.HybridSequential(prefix="net_")
    net.add(*blocks)
    net.initialize(mx.init.Xavier())
    return net


def small():
    return network(
        nn.Embedding(10, 7, prefix="words_"),
        nn.Dense(3, in_units=7, prefix="a_"),
        nn.Dense(2, in_units=3, prefix="b_"),
    )


def backward(net):
    with autograd.record():
        loss = net(mx.nd.array([1, 2, 3])).square().sum()
    loss.backward()


def test_a_layer_is_the_block_that_owns_the_parameters():
    names = {layer.name: [p.name for p in layer.parameters] for layer in layers_of(small())}
    assert names == {
        "words": ["words_weight"],
        "a": ["a_weight", "a_bias"],
        "b": ["b_weight", "b_bias"],
    }


def test_every_trainable_parameter_is_in_exactly_one_layer():
    lstm = rnn.LSTM(4, 2, bidirectional=True, input_size=3, prefix="lstm_")
    net = network(lstm, nn.LayerNorm(in_channels=8, prefix="norm_"))
    inside = [p.name for layer in layers_of(net) for p in layer.parameters]
    assert sorted(inside) == sorted(net.collect_params())


def test_frozen_parameters_are_in_no_layer():
    net = small()
    net[0].weight.grad_req = "null"
    assert [layer.name for layer in layers_of(net)] == ["a", "b"]


def test_a_shared_parameter_counts_once():
    first = nn.Dense(3, in_units=3, prefix="a_")
    net = network(first, nn.Dense(3, in_units=3, params=first.params))
    assert [p.name for layer in layers_of(net) for p in layer.parameters] == ["a_weight", "a_bias"]


def small_with(grad_req):
    net = small()
    net.collect_params().setattr("grad_req", grad_req)
    return net


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda: small_with("add"), "words_weight has grad_req='add'"),
        (lambda: small_with("null"), "no trainable parameter"),
        (lambda: network(nn.Dense(3, in_units=2), nn.BatchNorm(in_channels=3)), "BatchNorm"),
        (lambda: network(nn.Embedding(5, 2, sparse_grad=True)), "sparse gradients"),
        (
            lambda: network(nn.Dense(2, in_units=2), nn.Dense(2, in_units=2, dtype="float16")),
            "float16",
        ),
    ],
)
def test_what_would_leak_is_refused_by_name(spoil, message):
    with pytest.raises(UserError, match=message):
        layers_of(spoil())


@pytest.mark.parametrize("hybridize", [False, True])
def test_training_over_the_flat_array_is_bit_identical(hybridize):
    weights = []
    for is_flat in (False, True):
        mx.random.seed(1)
        np.random.seed(1)
        net = small()
        if hybridize:
            net.hybridize()
        flat = FlatGradients(layers_of(net)) if is_flat else None
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore=None)
        for step in range(5):
            backward(net)
            if flat:
                flat.refuse_stale()
            trainer.step(1)
            if step == 2:  # prediction lets oneDNN reorder weights in place
                net(mx.nd.arange(10)).wait_to_read()
        weights.append({name: p.data().asnumpy() for name, p in net.collect_params().items()})
    for name, value in weights[0].items():
        assert (value == weights[1][name]).all(), name


def test_a_parameter_without_gradient_is_noticed():
    net = small()
    net.add(nn.Dense(1, in_units=2, prefix="unused_"))
    net[-1].initialize()
    flat = FlatGradients(layers_of(net))
    with autograd.record():
        loss = net[1](net[0](mx.nd.array([1]))).sum()
    loss.backward()
    with pytest.raises(UserError, match="b_weight"):
        flat.refuse_stale()


@pytest.mark.parametrize(
    "cut",
    [
        lambda net: net.initialize(force_reinit=True),
        lambda net: (
            setattr(net[1].weight, "grad_req", "null")
            or setattr(net[1].weight, "grad_req", "write")
        ),
        lambda net: net.cast("float64"),
    ],
)
def test_a_parameter_that_left_the_flat_array_is_noticed(cut):
    net = small()
    flat = FlatGradients(layers_of(net))
    backward(net)
    flat.gradients()
    cut(net)
    with pytest.raises(UserError, match="would escape the clipping"):
        flat.gradients()


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_001])
def test_sum_of_squares(size, generator):
    values = generator.normal(size=size).astype(np.float32)
    assert sum_of_squares(values) == pytest.approx(np.square(values.astype(np.float64)).sum(), 1e-6)


def test_norms_are_exact_at_twenty_million_where_mxnet_is_low():
    values = np.full(20_000_000, 0.1, np.float32)
    exact = float(np.float64(np.float32(0.1)) ** 2 * values.size)
    assert sum_of_squares(values) == pytest.approx(exact, rel=1e-6)
    assert mx.nd.array(values).norm().asscalar() ** 2 < exact * 0.999  # why it is not used


def test_sum_of_squares_lets_no_nan_or_overflow_through():
    assert np.isnan(sum_of_squares(np.array([1, np.nan], np.float32)))
    assert np.isinf(sum_of_squares(np.array([np.inf, 1], np.float32)))
    assert not np.isfinite(sum_of_squares(np.full(5000, 1e30, np.float32)))


SIZES = ((5,), (2 * CHUNK + 77, 3), (CHUNK,), (1, 100))


@pytest.fixture(scope="module")
def flat():
    layers = []
    for k, sizes in enumerate(SIZES):
        parameters = [gluon.Parameter(f"p{k}_{i}", shape=(n,)) for i, n in enumerate(sizes)]
        for parameter in parameters:
            parameter.initialize(mx.init.Zero())
        layers.append(Layer(f"layer{k}", tuple(parameters)))
    return FlatGradients(layers)


@pytest.mark.parametrize("is_constant", [False, True])
def test_the_norms_are_those_of_float64_and_do_not_depend_on_threads(
    monkeypatch, generator, flat, is_constant
):
    values = generator.normal(size=flat.size).astype(np.float32)
    if is_constant:
        values.fill(0.1)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(module, "allowed_threads", lambda threads=threads: threads)
        found.append(flat.squared_norms(values))
    expected = [
        sum(
            np.square(flat.views(values)[parameter.name].astype(np.float64)).sum()
            for parameter in layer.parameters
        )
        for layer in flat.layers
    ]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    assert (found[1] == found[0]).all() and (found[2] == found[0]).all()


def test_what_lies_between_parameters_does_not_count(flat):
    values = np.full(flat.size, np.inf, np.float32)
    for view in flat.views(values).values():
        view.fill(1)
    np.testing.assert_allclose(flat.squared_norms(values), [sum(sizes) for sizes in SIZES])


@pytest.mark.parametrize("value", [1e-13, 1e-18, 1e-21, 1e-24, 1e-30, 1e-40])
def test_norms_of_gradients_that_float32_cannot_square(flat, value):
    """All layers are that small, or one beside others, whose norms stay as they are."""
    values = np.full(flat.size, value, np.float32)
    exact = float(values[0]) ** 2 * np.array([sum(sizes) for sizes in SIZES])
    np.testing.assert_allclose(flat.squared_norms(values), exact, rtol=1e-6)
    values[flat.segments[0]] = 1
    values[flat.segments[2]] = np.nan
    exact[0], exact[2] = 5, np.nan
    np.testing.assert_allclose(flat.squared_norms(values), exact, rtol=1e-6)


def test_a_gradient_of_zero_has_the_norm_zero(flat):
    assert not flat.squared_norms(np.zeros(flat.size, np.float32)).any()
