"""The bi-LSTM against one written in NumPy, and that padding is invisible."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd
from support.lstm_loop import loop_direction

from edp_mx.models.bilstm import BiLSTM


def small_lstm(num_layers=2, is_hybrid=True):
    lstm = BiLSTM(3, hidden_size=4, num_layers=num_layers, prefix="lstm_")
    lstm.initialize()
    rng = np.random.default_rng(0)
    for parameter in lstm.collect_params().values():
        parameter.set_data(mx.nd.array(rng.normal(0, 0.5, parameter.shape)))
    if is_hybrid:
        lstm.hybridize(static_alloc=True)
    return lstm


def loop_lstm(block, tokens):
    """One direction over one utterance (T, I), step by step in float64."""
    values = {
        name: getattr(block, f"l0_{name}").data().asnumpy().astype(np.float64)
        for name in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
    }
    return loop_direction(values, tokens)


def loop_bilstm(lstm, tokens, num_layers):
    for layer in range(num_layers):
        ahead = loop_lstm(getattr(lstm, f"forward{layer}"), tokens)
        behind = loop_lstm(getattr(lstm, f"backward{layer}"), tokens[::-1])[::-1]
        tokens = np.concatenate([ahead, behind], axis=1)
    return tokens


@settings(max_examples=15)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    num_layers=st.integers(1, 3),
    spare=st.integers(0, 2),
)
def test_equals_a_loop_over_each_unpadded_utterance(lengths, num_layers, spare):
    lstm = small_lstm(num_layers)
    inputs = np.random.default_rng(1).normal(size=(max(lengths) + spare, len(lengths), 3))
    found = lstm(mx.nd.array(inputs), mx.nd.array(lengths)).asnumpy()
    for row, length in enumerate(lengths):
        expected = loop_bilstm(lstm, inputs[:length, row], num_layers)
        np.testing.assert_allclose(found[:length, row], expected, atol=2e-6)
        assert not found[length:, row].any()


@pytest.mark.parametrize("is_hybrid", [False, True])
def test_padding_changes_no_gradient(is_hybrid):
    rng = np.random.default_rng(2)
    lengths, inputs = [5, 1, 3], rng.normal(size=(5, 3, 3))
    heads = rng.normal(size=(5, 3, 8))
    mask = (np.arange(5)[:, None] < lengths)[:, :, None]
    loud = np.concatenate([np.where(mask, inputs, 1e3), np.full((2, 3, 3), -1e3)])
    loud_heads = np.concatenate([np.where(mask, heads, 1e3), np.full((2, 3, 8), 1e3)])
    found = []
    for tokens, head in ((inputs * mask, heads * mask), (loud, loud_heads)):
        lstm, tokens = small_lstm(is_hybrid=is_hybrid), mx.nd.array(tokens)
        tokens.attach_grad()
        with autograd.record():
            output = lstm(tokens, mx.nd.array(lengths))
        output.backward(mx.nd.array(head))
        parameters = [p.grad().asnumpy() for p in lstm.collect_params().values()]
        found.append([output.asnumpy()[:5], tokens.grad.asnumpy()[:5], *parameters])
        assert not tokens.grad.asnumpy()[5:].any()
    for tight, loose in zip(*found):
        np.testing.assert_allclose(tight, loose, atol=1e-5)
        assert tight.any()


def test_dropout_only_between_layers():
    for num_layers, is_changed in ((1, False), (2, True)):
        lstm = BiLSTM(3, hidden_size=4, num_layers=num_layers, dropout=0.5, prefix="lstm_")
        lstm.initialize(mx.init.Uniform(0.5))
        inputs, lengths = mx.nd.ones((3, 2, 3)), mx.nd.array([3, 2])
        with autograd.train_mode():
            trained = lstm(inputs, lengths).asnumpy()
        assert (trained != lstm(inputs, lengths).asnumpy()).any() == is_changed
