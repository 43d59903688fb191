"""The Convolution rule against loops over windows in float64, and against MXNet."""

import mxnet as mx
import numpy as np
import pytest
from ghost_layers import assert_norms, assert_sum, drawn, drawn_factors, laid_out, recorded
from hypothesis import assume, given
from hypothesis import strategies as st

from edp_mx.privacy.ghost import convolution, explicit
from edp_mx.privacy.ghost.convolution import Window

# N, R, D, W, F and the window
CASES = [
    ((3, 4, 5, 8, 6), Window(3, pad=1)),
    ((2, 3, 2, 9, 3), Window(3, stride=2, pad=2, dilate=2)),
    ((2, 1, 1, 6, 2), Window(2, stride=3)),  # what the last window leaves over
    ((1, 1, 1, 1, 1), Window(1)),
    ((2, 24, 30, 20, 30), Window(3, pad=1)),  # a character CNN
]


def loop(inputs, gradients, window):
    """Every example's own gradients of weight and bias, window by window in float64."""
    padded = np.pad(inputs.astype(np.float64), [(0, 0)] * 3 + [(window.pad, window.pad)])
    weights = np.zeros((len(inputs), gradients.shape[2], inputs.shape[2], window.width))
    biases = np.zeros((len(inputs), gradients.shape[2]))
    for n, r, w in np.ndindex(len(inputs), inputs.shape[1], gradients.shape[3]):
        taps = w * window.stride + window.dilate * np.arange(window.width)
        weights[n] += np.multiply.outer(gradients[n, r, :, w], padded[n, r][:, taps])
        biases[n] += gradients[n, r, :, w]
    return weights, biases


def draw(shape, window, seed=0, swapped=(False, False)):
    num_examples, num_rows, channels, length, filters = shape
    outputs = (length + 2 * window.pad - window.reach - 1) // window.stride + 1
    inputs = drawn(seed, num_examples, num_rows, channels, length)
    gradients = drawn(seed + 1, num_examples, num_rows, filters, max(outputs, 0))
    return laid_out(inputs, swapped[0]), laid_out(gradients, swapped[1])


def term_norms(inputs, gradients):
    """At least the sum of the norms of the terms."""
    sizes = [np.abs(x.astype(np.float64)).sum(axis=(1, 2, 3)) for x in (inputs, gradients)]
    return sizes[1] + sizes[0] * np.abs(gradients).max()


def check(inputs, gradients, window, factors):
    weights, biases = loop(inputs, gradients, window)
    scales = term_norms(inputs, gradients)
    own_weights = convolution.weight_gradients(inputs, gradients, window)
    own_biases = convolution.bias_gradients(gradients)
    assert_norms(explicit.squared_norms(own_weights), weights, scales)
    assert_norms(explicit.squared_norms(own_biases), biases, scales)
    sums = np.ones(weights.shape[1:], np.float32), np.ones(biases.shape[1:], np.float32)
    explicit.add_sum(sums[0], own_weights, factors)
    explicit.add_sum(sums[1], own_biases, factors)
    num_terms = gradients.shape[1] * gradients.shape[3]
    assert_sum(sums[0], 1.0, weights, factors, scale=num_terms)
    assert_sum(sums[1], 1.0, biases, factors, scale=num_terms)


@given(
    st.tuples(*(st.integers(1, limit) for limit in (3, 4, 3, 8, 3))),
    st.builds(Window, *(st.integers(*ends) for ends in ((1, 4), (1, 3), (0, 3), (1, 3)))),
    st.integers(0, 10**6),
    st.tuples(st.booleans(), st.booleans()),
)
def test_norms_and_sums_are_those_of_the_loop(shape, window, seed, swapped):
    inputs, gradients = draw(shape, window, seed, swapped)
    assume(gradients.shape[3] > 0)
    check(inputs, gradients, window, drawn_factors(seed, shape[0]))


@pytest.mark.parametrize("shape, window", CASES)
def test_against_mxnet(shape, window):
    """One example at a time."""
    inputs, gradients = draw(shape, window)
    weight = np.zeros((shape[4], shape[2], window.width))

    def gradient_of(x, g):
        def layer(data, w, b):
            return mx.nd.Convolution(
                data,
                w,
                b,
                kernel=(window.width,),
                stride=(window.stride,),
                pad=(window.pad,),
                dilate=(window.dilate,),
                num_filter=shape[4],
            )

        return recorded(layer, x, (weight, np.zeros(shape[4])), g)

    alone = [gradient_of(x, g) for x, g in zip(inputs, gradients)]
    weights = convolution.weight_gradients(inputs, gradients, window)
    biases = convolution.bias_gradients(gradients)
    for found_weight, found_bias, (own_weight, own_bias) in zip(weights, biases, alone):
        size = np.abs(own_weight).max()
        np.testing.assert_allclose(found_weight, own_weight, rtol=1e-5, atol=1e-5 * size)
        np.testing.assert_allclose(found_bias, own_bias, rtol=1e-5, atol=1e-4)
    assert_norms(explicit.squared_norms(weights), [np.float64(own) for own, _ in alone])


@pytest.mark.parametrize("shape, window", CASES)
def test_groups_of_examples_change_nothing(shape, window, monkeypatch):
    inputs, gradients = draw(shape, window)
    whole = convolution.weight_gradients(inputs, gradients, window)
    monkeypatch.setattr(explicit, "GROUP_FLOATS", 1)
    again = convolution.weight_gradients(inputs, gradients, window)
    np.testing.assert_allclose(again, whole, rtol=1e-5, atol=1e-5 * np.abs(whole).max())
