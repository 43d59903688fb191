"""Dense layers: norms and sums without the gradients, and of gradients that are held."""

import numpy as np
import pytest
from ghost_layers import assert_norms, assert_sum, drawn, drawn_factors, laid_out
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.dp.privacy.ghost import dense, explicit

# N, T, d, p: Gram form for long vectors, direct form for long sequences
SHAPES = [(4, 5, 40, 30), (3, 40, 5, 4), (1, 1, 7, 3), (5, 1, 3, 1), (2, 24, 312, 120)]
sizes = st.tuples(*(st.integers(1, limit) for limit in (4, 12, 20, 20)))


def loop(inputs, gradients):
    """Every example's own gradients of weight and bias, position by position in float64."""
    weights, biases = [], []
    for a, g in zip(inputs.astype(np.float64), gradients.astype(np.float64)):
        weights.append(sum(np.outer(g_t, a_t) for a_t, g_t in zip(a, g)))
        biases.append(sum(g))
    return weights, biases


def term_norms(inputs, gradients):
    """Σ_t ‖g_t‖ ‖a_t‖ and Σ_t ‖g_t‖ of each example."""
    a, g = (np.linalg.norm(x.astype(np.float64), axis=2) for x in (inputs, gradients))
    return (a * g).sum(axis=1), g.sum(axis=1)


def draw(shape, seed=0, swapped=(False, False)):
    num_examples, num_positions, d, p = shape
    inputs = drawn(seed, num_examples, num_positions, d)
    gradients = drawn(seed + 1, num_examples, num_positions, p)
    return laid_out(inputs, swapped[0]), laid_out(gradients, swapped[1])


def both(inputs, gradients, **known):
    bias = np.empty(len(inputs))
    return dense.squared_norms(inputs, gradients, bias=bias, **known), bias


@given(sizes, st.integers(0, 10**6), st.tuples(st.booleans(), st.booleans()), st.booleans())
def test_norms_and_sums_are_those_of_the_loop(shape, seed, swapped, with_gram):
    inputs, gradients = draw(shape, seed, swapped)
    weights, biases = loop(inputs, gradients)
    known = dense.gram(inputs) if with_gram else None
    scales = [0.1 * terms for terms in term_norms(inputs, gradients)]
    weight, bias = both(inputs, gradients, input_gram=known)
    assert_norms(weight, weights, scales[0])
    assert_norms(bias, biases, scales[1])
    alone = dense.squared_norms(inputs, gradients, input_gram=known)
    assert_norms(alone, weights, scales[0])
    assert_norms(dense.bias_squared_norms(gradients), biases, scales[1])
    factors = drawn_factors(seed, shape[0])
    weight_sum, bias_sum = np.ones(shape[:1:-1], np.float32), np.ones(shape[3], np.float32)
    dense.add_weight_sum(weight_sum, inputs, gradients, factors)
    explicit.add_sum(bias_sum, explicit.sums_over_positions(gradients), factors)
    assert_sum(weight_sum, 1.0, weights, factors, scale=shape[1])
    assert_sum(bias_sum, 1.0, biases, factors, scale=shape[1])


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_of_examples_change_nothing(shape, monkeypatch):
    inputs, gradients = draw(shape)
    whole = both(inputs, gradients)
    monkeypatch.setattr(explicit, "GROUP_FLOATS", 1)
    np.testing.assert_allclose(both(inputs, gradients), whole, rtol=1e-6)
    np.testing.assert_allclose(dense.squared_norms(inputs, gradients), whole[0], rtol=1e-6)


def test_some_rows_of_a_weight():
    """Query, key and value: by a slice, or interleaved head by head; views or not."""
    inputs, gradients = draw((3, 6, 20, 24), swapped=(True, True))
    weights, _ = loop(inputs, gradients)
    interleaved = np.arange(24).reshape(4, 3, 2)[:, 1].ravel()  # 4 heads, 3 kinds, 2 rows
    for rows in (slice(8, 16), interleaved):
        part = gradients[..., rows]
        known = dense.gram(inputs)
        found = dense.squared_norms(inputs, part, input_gram=known)
        assert_norms(found, [w[rows] for w in weights])
        total = np.zeros((24, 20), np.float32)
        own = total[rows]
        dense.add_weight_sum(own, inputs, part, np.ones(3))
        assert_sum(own, 0.0, [w[rows] for w in weights], np.ones(3), scale=6)
        assert np.shares_memory(own, total) == isinstance(rows, slice)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("left", [1e-2, 1e-4, 1e-6, 0.0])
def test_positions_that_cancel(shape, left):
    """g at one position, −(1 − left) g at the next, on the same input."""
    inputs, gradients = draw(shape)
    inputs = np.concatenate([inputs, inputs], axis=1)
    gradients = np.concatenate([gradients, np.float32(left - 1) * gradients], axis=1)
    weights, biases = loop(inputs, gradients)
    weight, bias = both(inputs, gradients)
    terms = term_norms(inputs, gradients)
    assert_norms(weight, weights, 0.1 * terms[0])  # to 1e-7 of the terms
    assert_norms(bias, biases, 0.1 * terms[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("of_inputs, of_gradients", [(1e12, 1e12), (1e-9, 1e-28), (1.0, 1e-22)])
def test_the_range_of_float32_is_no_limit(shape, of_inputs, of_gradients):
    inputs, gradients = draw(shape)
    inputs, gradients = inputs * np.float32(of_inputs), gradients * np.float32(of_gradients)
    weights, biases = loop(inputs, gradients)
    weight, bias = both(inputs, gradients)
    assert_norms(weight, weights)
    assert_norms(bias, biases)
    assert_norms(dense.squared_norms(inputs, gradients), weights)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[0] > 1])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_example_that_is_not_finite_is_alone_with_it(shape, bad):
    inputs, gradients = draw(shape, swapped=(True, True))
    weights, _ = loop(inputs[1:], gradients[1:])
    inputs[0, 0, 0] = gradients[0, 0, 0] = bad
    weight, bias = both(inputs, gradients)
    assert not np.isfinite(weight[0]) and not np.isfinite(bias[0])
    assert_norms(weight[1:], weights)
    total = np.zeros(shape[:1:-1], np.float32)
    factors = np.r_[0.0, drawn_factors(0, shape[0] - 1)]
    dense.add_weight_sum(total, inputs, gradients, factors)
    assert_sum(total, 0.0, weights, factors[1:], scale=shape[1])


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shape", [(3, 6, 8, 2), (3, 6, 2, 8)])
def test_positions_without_gradient_are_left_out(shape, swapped):
    inputs, gradients = draw(shape, swapped=(swapped, not swapped))
    gradients[1, 2:] = gradients[2] = 0  # padding, and an example without loss
    weights, _ = loop(inputs, gradients)
    inputs[1, 4] = np.nan  # nobody reads what lies there
    factors = drawn_factors(0, 3)
    total = np.ones(shape[:1:-1], np.float32)
    dense.add_weight_sum(total, inputs, gradients, factors)
    assert_sum(total, 1.0, weights, factors, scale=shape[1])


@pytest.mark.parametrize("shape", [(1, 1), (3, 127), (3, 128), (2, 5, 77), (4, 0), (2, 20_000)])
def test_norms(shape):
    gradients = drawn(0, *shape)
    assert_norms(explicit.squared_norms(gradients), gradients.astype(np.float64))


@pytest.mark.parametrize("value", [1e-40, 1e-30, 1e-21, 0.1, 1e18, 1e21, 3e38])
def test_norms_beyond_the_range_of_float32(value):
    gradients = np.full((2, 100_003), value, np.float32)
    gradients[1] = 0
    assert_norms(explicit.squared_norms(gradients), gradients.astype(np.float64))


def test_an_example_that_is_not_finite_has_no_finite_norm_and_spoils_no_other():
    gradients = np.ones((4, 200), np.float32)
    gradients[1, 7], gradients[2, 8] = np.inf, np.nan
    norms = explicit.squared_norms(gradients)
    assert list(np.isfinite(norms)) == [True, False, False, True]
    total = np.zeros(200, np.float32)
    explicit.add_sum(total, gradients, np.array([0.5, 0.0, 0.0, 0.25]))
    explicit.add_sum(total, gradients, np.zeros(4))
    np.testing.assert_array_equal(total, np.full(200, 0.75, np.float32))


def test_a_factor_that_float32_would_round_up_counts_as_none():
    """1e-45 is float32's smallest number, 1.4e-45: this example would count for 1.4 times C."""
    total = np.zeros(1, np.float32)
    explicit.add_sum(total, np.full((1, 1), 3e38, np.float32), np.array([1e-45]))
    assert total[0] == 0


@pytest.mark.parametrize("num_positions", [1, 127, 128, 129, 5000])
def test_long_sums_do_not_drift(num_positions):
    gradients = np.full((2, num_positions, 3), 0.1, np.float32)
    sums = explicit.sums_over_positions(gradients)
    np.testing.assert_allclose(sums, num_positions * np.float64(np.float32(0.1)), rtol=3e-6)


def test_infinities_of_opposite_sign_stay_with_their_example():
    gradients = np.ones((3, 5, 2), np.float32)
    gradients[1, 0], gradients[1, 3] = np.inf, -np.inf
    sums = explicit.sums_over_positions(gradients)  # a warning would be an error
    assert np.isnan(sums[1]).all()
    np.testing.assert_array_equal(sums[[0, 2]], np.full((2, 2), 5.0))


@pytest.mark.parametrize("num_positions", [1, 3, 4, 7, 24, dense.FEW_POSITIONS])
@pytest.mark.parametrize("size", [dense.LONG_VECTORS, 131, 312])
def test_inner_products_of_long_vectors_are_those_in_float64(num_positions, size):
    values = drawn(0, 3, num_positions, size + 5)
    for rows in (values, values[..., :size], laid_out(values, True), values[1:, ::2]):
        expected = np.einsum("ntd,nsd->nts", rows, rows, dtype=np.float64)
        np.testing.assert_allclose(dense.gram(rows), expected, atol=1e-3)
    values[1, 0, 0] = np.nan
    assert (
        np.isnan(dense.gram(values)[1, 0]).all() and np.isfinite(dense.gram(values)[[0, 2]]).all()
    )
