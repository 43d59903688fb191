"""The LayerNorm rule against loops in float64, and against MXNet."""

import mxnet as mx
import numpy as np
import pytest
from ghost_layers import assert_norms, assert_sum, drawn, drawn_factors, laid_out, recorded
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.privacy.ghost import explicit


def loop(inputs, gradients, eps):
    """Every example's own gradients of γ and β, position by position in float64."""
    gammas, betas = [], []
    for x, g in zip(inputs.astype(np.float64), gradients.astype(np.float64)):
        normal = [(row - row.mean()) / np.sqrt(np.mean((row - row.mean()) ** 2) + eps) for row in x]
        gammas.append(sum(row * one for row, one in zip(g, normal)))
        betas.append(sum(g))
    return gammas, betas


def norms_of(inputs, gradients, eps):
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


def term_norms(gradients):
    """An x̂ is at most √d."""
    norms = np.linalg.norm(gradients.astype(np.float64), axis=2).sum(axis=1)
    return norms * np.sqrt(gradients.shape[2])


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(2, 20)),
    st.integers(0, 10**6),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([1e-5, 1e-2]),
)
def test_norms_and_sums_are_those_of_the_loop(shape, seed, swapped, eps):
    inputs = laid_out(spread_out(drawn(seed, *shape)), swapped[0])
    gradients = laid_out(drawn(seed + 1, *shape), swapped[1])
    gammas, betas = loop(inputs, gradients, eps)
    gamma, beta = norms_of(inputs, gradients, eps)
    assert_norms(gamma, gammas, term_norms(gradients))
    assert_norms(beta, betas, term_norms(gradients))
    factors = drawn_factors(seed, shape[0])
    sums = np.ones((2, shape[2]), np.float32)
    add_sums(sums, inputs, gradients, factors, eps)
    assert_sum(sums[0], 1.0, gammas, factors, scale=shape[1])
    assert_sum(sums[1], 1.0, betas, factors, scale=shape[1])


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e3])
def test_against_mxnet(eps, spread):
    """Where eps lies shows when the spread is small: inside the root, as here."""
    inputs, gradients = drawn(0, 4, 9, 33) * np.float32(spread), drawn(1, 4, 9, 33)

    def gradient_of(x, g):
        def layer(data, gamma, beta):
            return mx.nd.LayerNorm(data, gamma, beta, eps=eps)

        return recorded(layer, x, (np.ones(33), np.zeros(33)), g)

    alone = [gradient_of(x[None], g[None]) for x, g in zip(inputs, gradients)]
    gamma, beta = norms_of(inputs, gradients, eps)
    assert_norms(gamma, [np.float64(one) for one, _ in alone])
    assert_norms(beta, [np.float64(one) for _, one in alone])


def test_padding_of_constant_rows_is_harmless():
    """A padded row is constant, x̂ = 0, and its gradient is 0."""
    inputs, gradients = np.zeros((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.float32)
    gradients[1] = 1
    gamma, beta = norms_of(inputs, gradients, 1e-12)
    np.testing.assert_array_equal(gamma, 0)
    np.testing.assert_allclose(beta, [0, 4 * 3**2])


def test_long_sequences_do_not_drift():
    """All terms 0.1 or nearly: where float32 drifts furthest."""
    inputs = np.tile(np.float32([1, -1]), (2, 3000, 4))
    gradients = inputs * np.float32(0.1)
    gradients[1] = 0.1
    gammas, betas = loop(inputs, gradients, 1e-5)
    gamma, beta = norms_of(inputs, gradients, 1e-5)
    assert_norms(gamma, gammas, scales=1e-3)
    assert_norms(beta, betas, scales=1e-3)
