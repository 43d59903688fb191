"""The Embedding rule against tables of single examples in float64, and against MXNet."""

import numpy as np
import pytest
from ghost_layers import assert_norms, assert_sum, drawn, drawn_factors, laid_out
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.privacy.ghost import embedding


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
    with pytest.raises(IndexError, match="a table of 3 rows"):
        embedding.refuse_strangers(np.array([[0, bad]]), 3)
