"""A table that goes in as an Embedding and out as an output layer: formula, network, refusals."""

import tracemalloc

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import gluon
from mxnet.gluon import nn
from support.prescribed import taken

from edp_mx.dp.privacy.ghost import tied
from edp_mx.dp.privacy.ghost.rules import DenseRule
from edp_mx.errors import UserError
from tests.unit.dp.privacy.ghost.test_clipping import assert_same_sum, drawn, ghost_for


def drawn_arrays(generator, n, s, t, v, d):
    """Inputs and gradients of an output layer; ids, often the same, and their gradients."""
    return (generator.normal(size=(n, s, d)).astype(np.float32),
            generator.normal(size=(n, s, v)).astype(np.float32),
            generator.integers(0, v, (n, t)),
            generator.normal(size=(n, t, d)).astype(np.float32))  # fmt: skip


class Dense:
    """An output layer as `DenseRule` is one, with a trainable table and no bias."""

    bias_norms = add_sums = None
    products = DenseRule.products

    def __init__(self, inputs, gradients):
        self.inputs, self._gradients = inputs, gradients


def norms_of(inputs, gradients, ids, embedded):
    return tied.squared_norms(Dense(inputs, gradients), ids, embedded)


def by_hand(inputs, gradients, ids, embedded):
    """The squared norm of each example's whole gradient, (V, d) in float64."""
    found = []
    for x, g, w, e in zip(inputs.astype(float), gradients.astype(float), ids, embedded):
        whole = g.T @ x  # (V, d)
        np.add.at(whole, w.astype(int), e.astype(float))
        found.append(np.square(whole).sum())
    return np.array(found)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*(st.integers(1, 6) for _ in range(5))), seed=st.integers(0, 999),
    scale=st.sampled_from([1.0, 1e-3, 1e3]),
)  # fmt: skip
def test_the_norm_is_that_of_the_whole_gradient(sizes, seed, scale):
    arrays = drawn_arrays(np.random.default_rng(seed), *sizes)
    arrays = (*arrays[:3], arrays[3] * np.float32(scale))
    np.testing.assert_allclose(norms_of(*arrays), by_hand(*arrays), rtol=1e-5)


def test_where_the_two_uses_cancel_float64_takes_over(generator):
    """The look-up's gradient is nearly the opposite of the output layer's."""
    inputs = generator.normal(size=(3, 1, 4)).astype(np.float32)
    ids = np.array([[0], [1], [2]])
    gradients = np.zeros((3, 1, 5), np.float32)
    gradients[np.arange(3), 0, ids[:, 0]] = 1
    embedded = (-inputs * np.float32(1 - 1e-4)).astype(np.float32)
    arrays = inputs, gradients, ids, embedded
    np.testing.assert_allclose(norms_of(*arrays), by_hand(*arrays), rtol=1e-6)


def test_without_the_cross_term_it_would_be_another_norm(generator):
    arrays = drawn_arrays(generator, 4, 3, 3, 2, 5)
    inputs, gradients, ids, embedded = arrays
    nothing = np.zeros_like
    apart = norms_of(inputs, gradients, ids, nothing(embedded))
    apart += norms_of(nothing(inputs), gradients, ids, embedded)
    assert (np.abs(apart / norms_of(*arrays) - 1) > 1e-3).any()


def test_no_array_of_examples_by_pieces_by_width_is_made(generator):
    """Nor more than two of (examples, positions, pieces)."""
    arrays = drawn_arrays(generator, 8, 6, 6, 20_000, 128)
    tracemalloc.start()
    norms_of(*arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * arrays[1].nbytes < 8 * 20_000 * 128


class Tied(gluon.HybridBlock):
    """A table (V, H) that is looked up in, and is the output layer; and what else reads it."""

    def __init__(self, more="nothing", *, pieces=7, width=4, bias=False):
        super().__init__(prefix="tied_")
        self._more, self._sizes = more, (pieces, width)
        with self.name_scope():
            self.embed = nn.Embedding(pieces, width, prefix="embed_")
            self.dense = nn.Dense(width, in_units=width, flatten=False, prefix="dense_")
            self.table = self.embed.weight
            self.bias = self.params.get("bias", shape=(pieces,)) if bias else None

    def hybrid_forward(self, F, ids, table, bias=None):
        """Shapes: (N, T) → (N,)."""
        pieces, width = self._sizes
        states = self.dense(self.embed(ids))  # (N, T, H)
        if self._more == "looked up twice":
            states = states + F.Embedding(ids, table, input_dim=pieces, output_dim=width)
        made = 2 * table if self._more == "scaled" else table
        made = F.reverse(table, axis=0) if self._more == "in another order" else made
        given = (states, made) if bias is None else (states, made, bias)
        scores = F.FullyConnected(
            *given, num_hidden=pieces, no_bias=bias is None, flatten=False
        )  # (N, T, V)
        if self._more == "two output layers":
            scores = scores + F.FullyConnected(
                F.square(states), table, num_hidden=pieces, no_bias=True, flatten=False
            )
        chosen = F.slice_axis(F.log_softmax(scores, axis=-1), axis=2, begin=2, end=3)
        return F.sum(chosen, axis=(1, 2))


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_the_clipped_sum_is_the_loops(rows, bias, generator):
    network = drawn(Tied(bias=bias))
    network.hybridize()
    ids = mx.nd.array(generator.integers(0, 7, (6, 5)))
    for c in (0.5, 1e9):
        ghost, loop, _ = ghost_for(network, max_grad_norm=c)
        units = [lambda s=s: network(ids[s : s + rows]).sum().reshape((1,))
                 for s in range(0, 6, rows)]  # fmt: skip
        expected = taken(loop.clip(units))
        found = taken(ghost.clip([lambda: network(ids).reshape((-1, rows)).sum(axis=1)]))
        assert_same_sum(found, expected)
        assert ghost.statistics.norm_sum == pytest.approx(loop.statistics.norm_sum, rel=1e-5)


@pytest.mark.parametrize("more", ["looked up twice", "two output layers", "in another order"])
def test_any_other_sharing_is_refused(more):
    with pytest.raises(UserError, match="tied_embed_weight: more than one operator reads it"):
        ghost_for(drawn(Tied(more)))


def test_a_weight_that_is_made_of_the_table_is_refused():
    with pytest.raises(UserError, match="clipping has no rule .it reads tied_embed_weight"):
        ghost_for(drawn(Tied("scaled")))


def test_a_frozen_table_is_left_out(generator):
    network = drawn(Tied())
    network.embed.weight.grad_req = "null"
    ids = mx.nd.array(generator.integers(0, 7, (3, 4)))
    ghost, loop, _ = ghost_for(network)
    expected = taken(loop.clip([lambda r=r: network(ids[r : r + 1]) for r in range(3)]))
    assert_same_sum(taken(ghost.clip([lambda: network(ids)])), expected)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_unit_that_is_not_finite_adds_nothing(bad, generator):
    network = drawn(Tied())
    ids = mx.nd.array(generator.integers(0, 7, (3, 4)))
    ghost, loop, _ = ghost_for(network)
    expected = taken(loop.clip([lambda r=r: network(ids[r : r + 1]) for r in (0, 2)]))
    found = taken(ghost.clip([lambda: network(ids) * mx.nd.array([1, bad, 1])]))
    assert_same_sum(found, expected)
    assert ghost.statistics.non_finite == 1
