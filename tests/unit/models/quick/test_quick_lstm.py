"""Both bidirectional LSTMs against each other: values, gradients, masks."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.models import clc_layers
from edp_mx.models.quick import quicken
from edp_mx.models.quick.lstm import BiLSTM
from tests.support.models import random_batch, tiny

LENGTHS = [5, 1, 3, 5]


def lstm_of(input_size=3, hidden_size=4, num_layers=2, *, is_ours, is_hybrid=True, dropout=0.0):
    lstm = clc_layers.BiLSTM(
        input_size, hidden_size=hidden_size, num_layers=num_layers, dropout=dropout, prefix="lstm_"
    )
    lstm.initialize()
    generator = np.random.default_rng(0)
    for parameter in lstm.collect_params().values():  # biases too, which start at zero
        parameter.set_data(mx.nd.array(generator.normal(0, 0.5, parameter.shape)))
    if is_ours:
        holder = nn.HybridSequential()
        holder.add(lstm)
        quicken(holder, mx.cpu())
        assert type(lstm) is BiLSTM
    if is_hybrid:
        lstm.hybridize(static_alloc=True)
    return lstm


def drawn(lengths, spare=0, *, seed=1, input_size=3, hidden_size=4):
    """Inputs and gradients of the states, loud at padding."""
    generator = np.random.default_rng(seed)
    shape = max(lengths) + spare, len(lengths)
    padding = np.arange(shape[0])[:, None] >= lengths
    inputs, heads = (generator.normal(size=(*shape, d)) for d in (input_size, 2 * hidden_size))
    inputs[padding] = 1e3
    heads[padding] = -1e3
    return inputs.astype(np.float32), heads.astype(np.float32)


def run(lstm, inputs, heads, lengths, **record):
    """States, and the gradients of the inputs and of all parameters by name."""
    inputs = mx.nd.array(inputs)
    inputs.attach_grad()
    with autograd.record(**record):
        states = lstm(inputs, mx.nd.array(lengths))
    states.backward(mx.nd.array(heads))
    parameters = lstm.collect_params().items()
    found = {name: p.grad().asnumpy() for name, p in parameters if p.grad_req != "null"}
    return {"states": states.asnumpy(), "inputs": inputs.grad.asnumpy(), **found}


def assert_same(ours, theirs):
    """To 1e-5 of each array's largest entry, or of 1."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=1e-5 * scale, err_msg=name)


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    spare=st.integers(0, 2),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3)),
    is_hybrid=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_values_and_gradients_are_those_of_mxnet(lengths, spare, sizes, is_hybrid, seed):
    input_size, hidden_size, _ = sizes
    batch = drawn(lengths, spare, seed=seed, input_size=input_size, hidden_size=hidden_size)
    ours, theirs = (
        run(lstm_of(*sizes, is_ours=is_ours, is_hybrid=is_hybrid), *batch, lengths)
        for is_ours in (True, False)
    )
    assert_same(ours, theirs)
    padding = np.arange(max(lengths) + spare)[:, None] >= lengths
    assert not ours["states"][padding].any()
    assert not ours["inputs"][padding].any()


def test_outside_training_states_and_gradients_are_the_same():
    inputs, heads = drawn(LENGTHS)
    lstm = lstm_of(is_ours=True, dropout=0.5)
    theirs = run(lstm_of(is_ours=False), inputs, heads, LENGTHS)
    assert_same(run(lstm, inputs, heads, LENGTHS, train_mode=False), theirs)
    states = lstm(mx.nd.array(inputs), mx.nd.array(LENGTHS)).asnumpy()
    np.testing.assert_allclose(states, theirs["states"], atol=1e-6)


@pytest.mark.parametrize("frozen", ["i2h_weight", "h2h_weight", "bias", "forward0", "backward1"])
def test_frozen_parameters_change_nothing_else(frozen):
    batch = drawn(LENGTHS)
    expected = run(lstm_of(is_ours=False), *batch, LENGTHS)
    lstm = lstm_of(is_ours=True)
    for name, parameter in lstm.collect_params().items():
        if frozen in name:
            parameter.grad_req = "null"
    found = run(lstm, *batch, LENGTHS)
    assert 2 < len(found) < len(expected)
    assert_same(found, {name: expected[name] for name in found})


def test_a_short_batch_after_a_long_one_leaves_no_trace():
    lstm = lstm_of(is_ours=True)
    fresh = run(lstm, *drawn([2, 1, 2, 2], 3), [2, 1, 2, 2])
    run(lstm, *drawn(LENGTHS), LENGTHS)
    again = run(lstm, *drawn([2, 1, 2, 2], 3), [2, 1, 2, 2])
    for name, expected in fresh.items():
        np.testing.assert_array_equal(again[name], expected, err_msg=name)


def test_saved_weights_predict_the_same_either_way(tmp_path, monkeypatch, generator):
    model = tiny("clc")
    assert type(model.encoder.lstm) is BiLSTM
    model.save_parameters(str(tmp_path / "weights"))
    monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    other = tiny("clc")
    assert type(other.encoder.lstm) is clc_layers.BiLSTM
    for parameter in other.collect_params().values():
        parameter.set_data(mx.nd.zeros(parameter.shape))
    other.load_parameters(str(tmp_path / "weights"))
    batch = random_batch(generator, LENGTHS, "clc")
    for ours, theirs in zip(*(next(iter(m.outputs([batch])))[1:] for m in (model, other))):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_dropout_only_between_layers():
    inputs, lengths = mx.nd.ones((3, 2, 3)), mx.nd.array([3, 2])
    for num_layers, is_changed in ((1, False), (2, True)):
        lstm = lstm_of(num_layers=num_layers, is_ours=True, dropout=0.5)
        with autograd.train_mode():
            trained = lstm(inputs, lengths).asnumpy()
        assert (trained != lstm(inputs, lengths).asnumpy()).any() == is_changed
