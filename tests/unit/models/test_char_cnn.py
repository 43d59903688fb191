"""Characters of a word and states of an utterance: only what is no padding is seen."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd

from edp_mx.models.clc_layers import POOLINGS, CharCNN, Pooling


def small_cnn(width=3, seed=0):
    cnn = CharCNN(7, dimension=4, filters=5, width=width, prefix="cnn_")
    cnn.initialize()
    rng = np.random.default_rng(seed)
    for parameter in cnn.collect_params().values():
        parameter.set_data(mx.nd.array(rng.normal(size=parameter.shape)))
    cnn.hybridize(static_alloc=True)
    return cnn


def features(cnn, characters):
    return cnn(mx.nd.array(characters, dtype="int32"))


def loop_features(cnn, token):
    """Features of one token from its unpadded characters, in float64."""
    vectors = cnn.embedding.weight.data().asnumpy().astype(np.float64)[token]  # (C, D)
    filters = cnn.convolution.weight.data().asnumpy().astype(np.float64)  # (F, D, W)
    bias = cnn.convolution.bias.data().asnumpy().astype(np.float64)
    half = filters.shape[2] // 2
    best = np.zeros(len(bias))
    for centre in range(len(token)):
        total = bias.copy()
        for offset in range(-half, half + 1):
            if 0 <= centre + offset < len(token):
                total += filters[:, :, offset + half] @ vectors[centre + offset]
        best = np.maximum(best, total)
    return best


@settings(max_examples=25)
@given(
    spelled=st.lists(
        st.lists(st.lists(st.integers(1, 6), max_size=6), min_size=2, max_size=2),
        min_size=1,
        max_size=3,
    ),
    width=st.sampled_from([1, 3, 5]),
    spare=st.integers(0, 3),
)
def test_equals_a_loop_over_unpadded_characters(spelled, width, spare):
    cnn = small_cnn(width)
    longest = max(1, *(len(token) for row in spelled for token in row)) + spare
    padded = [[token + [0] * (longest - len(token)) for token in row] for row in spelled]
    found = features(cnn, padded).asnumpy()
    expected = [[loop_features(cnn, np.array(token, int)) for token in row] for row in spelled]
    np.testing.assert_allclose(found, expected, atol=1e-5)


LENGTHS = [4, 1, 3]


def loop_pooling(kind, states):
    return {"mean": states.mean(0), "max": states.max(0), "first": states[0], "last": states[-1]}[
        kind
    ]


@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("kind", POOLINGS)
@pytest.mark.filterwarnings("ignore:The 1-th input to HybridBlock")  # "first" asks for no lengths
def test_pooling_sees_tokens_only(kind, is_hybrid):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(3, 5, 6)) - 2  # nearly all negative: a padding of 0 would be seen
    pooling = Pooling(kind)
    pooling.hybridize(is_hybrid)
    array = mx.nd.array(states)
    array.attach_grad()
    with autograd.record():
        pooled = pooling(array, mx.nd.array(LENGTHS))
    pooled.backward()
    for row, length in enumerate(LENGTHS):
        expected = loop_pooling(kind, states[row, :length])
        np.testing.assert_allclose(pooled.asnumpy()[row], expected, rtol=1e-5)
        gradient = array.grad.asnumpy()[row]
        assert not gradient[length:].any()
        np.testing.assert_allclose(gradient.sum(0), np.ones(6), rtol=1e-5)
