"""Rules of embeddings, convolutions, layer norms against loops in float64, and against MXNet."""

import mxnet as mx
import numpy as np
import pytest
from ghost_layers import assert_norms, assert_sum, drawn, drawn_factors, laid_out, recorded
from hypothesis import assume, given
from hypothesis import strategies as st

from edp_mx.dp.privacy.ghost import convolution, embedding, explicit
from edp_mx.dp.privacy.ghost.convolution import Window
from edp_mx.errors import UserError


def tables(ids, gradients, num_rows):
    """Every example's own gradient of the whole table, position by position in float64."""
    result = np.zeros((len(ids), num_rows, gradients.shape[-1]))
    for place in np.ndindex(ids.shape):
        result[place[0], int(ids[place])] += gradients[place]
    return result


def term_norms(gradients):
    norms = np.linalg.norm(gradients.astype(np.float64), axis=-1)
    return norms.reshape(len(norms), -1).sum(axis=1)


@given(
    st.tuples(*(st.integers(1, limit) for limit in (4, 12, 8, 9))),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([np.float32, np.int32, np.int64]),
)
def test_norms_and_sums_are_those_of_the_tables(shape, seed, swapped, dtype):
    num_examples, num_positions, d, num_rows = shape
    ids = np.random.default_rng(seed).integers(0, num_rows, shape[:2]).astype(dtype)
    gradients = laid_out(drawn(seed, num_examples, num_positions, d), swapped)
    own = tables(ids, gradients, num_rows)
    assert_norms(embedding.squared_norms(ids, gradients), own, term_norms(gradients))
    factors = drawn_factors(seed, num_examples)
    total = np.ones((num_rows, d), np.float32)
    embedding.add_sum(total, ids, gradients, factors)
    assert_sum(total, 1.0, own, factors, scale=num_positions)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_more_axes_in_any_order(order):
    """Characters of tokens (N, T, C), tokens or characters first in memory."""
    ids = np.random.default_rng(0).integers(0, 9, (3, 4, 5))
    gradients = drawn(1, 3, 4, 5, 6)
    own = tables(ids, gradients, 9)
    there, back = (*order, 3), np.argsort(order)
    view = np.ascontiguousarray(gradients.transpose(there)).transpose(*back, 3)
    assert_norms(embedding.squared_norms(ids, view), own, term_norms(gradients))
    total = np.zeros((9, 6), np.float32)
    embedding.add_sum(total, ids, view, np.ones(3))
    assert_sum(total, 0.0, own, np.ones(3), scale=20)


@pytest.mark.parametrize("num_positions", [1, 480, 4000])
def test_one_id_everywhere(num_positions):
    """The longest sum there is, of equal values: where float32 drifts furthest."""
    gradients = np.full((2, num_positions, 30), 0.1, np.float32)
    ids = np.ones((2, num_positions))
    own = tables(ids, gradients, 2)
    assert_norms(embedding.squared_norms(ids, gradients), own)
    total = np.zeros((2, 30), np.float32)
    embedding.add_sum(total, ids, gradients, np.ones(2))
    assert_sum(total, 0.0, own, np.ones(2), scale=0)


def test_short_and_long_lists_of_one_id_together():
    ids = np.repeat([[3, 1, 0, 3, 2]], [100, 128, 1, 300, 129], axis=1)
    ids = np.concatenate([ids, ids[:, ::-1]])
    gradients = drawn(0, *ids.shape, 4)
    own = tables(ids, gradients, 5)
    assert_norms(embedding.squared_norms(ids, gradients), own)
    total = np.zeros((5, 4), np.float32)
    embedding.add_sum(total, ids, gradients, np.array([1.0, 0.5]))
    assert_sum(total, 0.0, own, [1.0, 0.5])


@pytest.mark.parametrize("scale", [1e-30, 1e21])
def test_the_range_of_float32_is_no_limit(scale):
    ids = np.array([[1, 1, 2], [1, 2, 3]])
    gradients = drawn(0, 2, 3, 4) * np.float32(scale)
    assert_norms(embedding.squared_norms(ids, gradients), tables(ids, gradients, 4))


def test_an_example_that_is_not_finite_is_alone_with_it():
    ids, gradients = np.array([[1, 1], [1, 2], [2, 0]]), drawn(0, 3, 2, 4)
    own = tables(ids[1:], gradients[1:], 3)
    gradients[0, 1] = np.nan
    norms = embedding.squared_norms(ids, gradients)
    assert not np.isfinite(norms[0])
    assert_norms(norms[1:], own)
    total = np.zeros((3, 4), np.float32)
    embedding.add_sum(total, ids, gradients, np.array([0.0, 0.5, 1.0]))
    assert_sum(total, 0.0, own, [0.5, 1.0])
    embedding.add_sum(total, ids, gradients, np.zeros(3))
    assert_sum(total, 0.0, own, [0.5, 1.0])


@pytest.mark.parametrize("bad", [-1, 3])
def test_ids_that_mxnet_would_clip_are_refused(bad):
    with pytest.raises(UserError, match=f"the rows {min(bad, 0)} to .* 3 rows, from 0 to 2"):
        embedding.refuse_strangers(np.array([[0, bad]]), 3)


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


def window_norms(inputs, gradients):
    """At least the sum of the norms of the terms."""
    sizes = [np.abs(x.astype(np.float64)).sum(axis=(1, 2, 3)) for x in (inputs, gradients)]
    return sizes[1] + sizes[0] * np.abs(gradients).max()


def check(inputs, gradients, window, factors):
    weights, biases = loop(inputs, gradients, window)
    scales = window_norms(inputs, gradients)
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


def loop_over_positions(inputs, gradients, eps):
    """Every example's own gradients of γ and β, position by position in float64."""
    gammas, betas = [], []
    for x, g in zip(inputs.astype(np.float64), gradients.astype(np.float64)):
        normal = [(row - row.mean()) / np.sqrt(np.mean((row - row.mean()) ** 2) + eps) for row in x]
        gammas.append(sum(row * one for row, one in zip(g, normal)))
        betas.append(sum(g))
    return gammas, betas


def norms_of_both(inputs, gradients, eps):
    gamma = explicit.gamma_gradients(inputs, gradients, eps=eps)
    beta = explicit.sums_over_positions(gradients)
    return explicit.squared_norms(gamma), explicit.squared_norms(beta)


def add_sums(sums, inputs, gradients, factors, eps):
    gamma = explicit.gamma_gradients(inputs, gradients, eps=eps)
    explicit.add_sum(sums[0], gamma, factors)
    explicit.add_sum(sums[1], explicit.sums_over_positions(gradients), factors)


def spread_out(inputs):
    """Values whose variance is not small against their squares, where float32 knows x̂ well."""
    return np.sin(inputs) + np.linspace(-4, 4, inputs.shape[2], dtype=np.float32)


def position_norms(gradients):
    """An x̂ is at most √d."""
    norms = np.linalg.norm(gradients.astype(np.float64), axis=2).sum(axis=1)
    return norms * np.sqrt(gradients.shape[2])


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(2, 20)),
    st.integers(0, 10**6),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([1e-5, 1e-2]),
)
def test_layer_norms_and_sums_are_those_of_the_loop(shape, seed, swapped, eps):
    inputs = laid_out(spread_out(drawn(seed, *shape)), swapped[0])
    gradients = laid_out(drawn(seed + 1, *shape), swapped[1])
    gammas, betas = loop_over_positions(inputs, gradients, eps)
    gamma, beta = norms_of_both(inputs, gradients, eps)
    assert_norms(gamma, gammas, position_norms(gradients))
    assert_norms(beta, betas, position_norms(gradients))
    factors = drawn_factors(seed, shape[0])
    sums = np.ones((2, shape[2]), np.float32)
    add_sums(sums, inputs, gradients, factors, eps)
    assert_sum(sums[0], 1.0, gammas, factors, scale=shape[1])
    assert_sum(sums[1], 1.0, betas, factors, scale=shape[1])


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_layer_norm_against_mxnet(eps, spread):
    """Where eps lies shows when the spread is small: inside the root, as here."""
    inputs, gradients = drawn(0, 4, 9, 33) * np.float32(spread), drawn(1, 4, 9, 33)

    def gradient_of(x, g):
        def layer(data, gamma, beta):
            return mx.nd.LayerNorm(data, gamma, beta, eps=eps)

        return recorded(layer, x, (np.ones(33), np.zeros(33)), g)

    alone = [gradient_of(x[None], g[None]) for x, g in zip(inputs, gradients)]
    gamma, beta = norms_of_both(inputs, gradients, eps)
    assert_norms(gamma, [np.float64(one) for one, _ in alone])
    assert_norms(beta, [np.float64(one) for _, one in alone])


def test_padding_of_constant_rows_is_harmless():
    """A padded row is constant, x̂ = 0, and its gradient is 0."""
    inputs, gradients = np.zeros((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.float32)
    gradients[1] = 1
    gamma, beta = norms_of_both(inputs, gradients, 1e-12)
    np.testing.assert_array_equal(gamma, 0)
    np.testing.assert_allclose(beta, [0, 4 * 3**2])


def test_long_sequences_do_not_drift():
    """All terms 0.1 or nearly: where float32 drifts furthest."""
    inputs = np.tile(np.float32([1, -1]), (2, 3000, 4))
    gradients = inputs * np.float32(0.1)
    gradients[1] = 0.1
    gammas, betas = loop_over_positions(inputs, gradients, 1e-5)
    gamma, beta = norms_of_both(inputs, gradients, 1e-5)
    assert_norms(gamma, gammas, scales=1e-3)
    assert_norms(beta, betas, scales=1e-3)
