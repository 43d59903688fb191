"""The sum of clipped per-example gradients against a float64 loop by hand."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from support.examples import (
    HIDDEN,
    SCALES,
    WIDTH,
    Examples,
    clipped_sum_by_hand,
    gradient_by_hand,
    loop_clipping,
    network_with,
    one_by_one,
    tensors_of,
    weights_for,
)
from support.prescribed import taken
from support.releases import release_with

from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.errors import UserError


@pytest.fixture
def problem(generator):
    """A network, its flat gradients, examples, and their gradients by hand."""
    weights = weights_for(generator)
    inputs, targets = generator.normal(size=(9, WIDTH)), generator.normal(size=(9, 1))
    inputs[6:] *= 0.01  # and small gradients
    targets[6:] = [[float(w)] for w in (gradient_free(weights, x) for x in inputs[6:])]
    gradients = [gradient_by_hand(weights, x, y) for x, y in zip(inputs, targets)]
    network, flat = network_with(weights)
    return network, flat, Examples(inputs, targets), gradients


def gradient_free(weights, x):
    """Nearly the target that the network already predicts."""
    (w1, b1), (w2, b2) = weights
    return 1.01 * (w2 @ np.tanh(w1 @ x + b1) + b2)[0] + 0.01


def assert_equal(flat, array, expected, rtol=1e-5):
    """To float32's rounding of the terms, which are as large as the largest sum and may cancel."""
    size = max(1.0, *(abs(value).max() for slow in expected for value in slow))
    for tensors, slow in zip(tensors_of(flat, array), expected):
        for tensor, value in zip(tensors, slow):
            np.testing.assert_allclose(tensor, value, rtol=rtol, atol=3e-6 * size)


@pytest.mark.parametrize("c", [0.05, 1.0, 1e6])
def test_the_sum_is_that_of_a_float64_loop(problem, c):
    network, flat, examples, gradients = problem
    clipping = loop_clipping(flat, max_grad_norm=c)
    clipped = clipping.clip(one_by_one(network, examples, range(9)))
    expected, norms = clipped_sum_by_hand(gradients, scales=SCALES, max_grad_norm=c)
    assert_equal(flat, taken(clipped), expected)
    assert clipped.loss.shape == (1,) and clipped.num_units == 9
    loss = network.loss(examples.batch(np.arange(9))).sum()
    assert float(clipped.loss.asscalar()) == pytest.approx(float(loss.asscalar()), rel=1e-5)
    found = clipping.statistics
    assert (found.units, found.clipped, found.non_finite) == (9, (norms > c).sum(), 0)
    assert found.norm_sum == pytest.approx(norms.sum(), rel=1e-5)
    if c == 1e6:  # without clipping it is the plain gradient
        with autograd.record():
            loss = network.loss(examples.batch(np.arange(9))).sum()
        loss.backward()
        assert_equal(flat, flat.gradients().copy(), expected)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 3e38])
def test_an_example_that_is_not_finite_is_dropped_and_counted(problem, poison):
    """Of several examples, and alone."""
    network, flat, examples, gradients = problem
    examples.targets[4] = poison
    clipping = loop_clipping(flat)
    clipped = clipping.clip(one_by_one(network, examples, range(9)))
    others = [g for i, g in enumerate(gradients) if i != 4]
    expected, norms = clipped_sum_by_hand(others, scales=SCALES, max_grad_norm=1.0)
    assert_equal(flat, taken(clipped), expected)
    assert (clipping.statistics.units, clipping.statistics.non_finite) == (9, 1)
    assert clipping.statistics.norm_sum == pytest.approx(norms.sum(), rel=1e-5)
    assert not taken(clipping.clip(one_by_one(network, examples, [4]))).any()
    assert clipping.statistics.non_finite == 2


def test_a_step_without_units_is_zero_after_any_other(problem):
    network, flat, examples, _ = problem
    for before in ([], [3], range(9)):
        clipping = loop_clipping(flat)
        clipping.clip(one_by_one(network, examples, before))
        clipped = clipping.clip([])
        assert float(clipped.loss.asscalar()) == 0 and clipped.num_units == 0
        assert not taken(clipped).any() and clipping.statistics.units == len(before)


def test_one_sum_replaces_the_one_before(problem):
    network, flat, examples, gradients = problem
    clipping = loop_clipping(flat)
    for drawn in (range(5), [7], range(2, 4), [8], range(9)):
        found = taken(clipping.clip(one_by_one(network, examples, drawn)))
        chosen = [gradients[i] for i in drawn]
        expected, _ = clipped_sum_by_hand(chosen, scales=SCALES, max_grad_norm=1.0)
        assert_equal(flat, found, expected, rtol=1e-4)


def test_one_sum_is_taken_once_and_a_raw_gradient_never(problem):
    network, flat, examples, _ = problem
    clipping = loop_clipping(flat)
    for drawn in ([3], range(9)):
        clipped = clipping.clip(one_by_one(network, examples, drawn))
        clipped.take()
        with pytest.raises(UserError, match="released (only )?once"):
            clipped.take()
        clipped = clipping.clip(one_by_one(network, examples, drawn))
        with autograd.record():
            loss = network.loss(examples.batch(np.arange(9))).sum()
        loss.backward()
        with pytest.raises(UserError, match="these gradients are raw"):
            clipped.take()


def test_a_chunk_that_fails_leaves_nothing_to_release(problem):
    network, flat, examples, _ = problem
    clipping = loop_clipping(flat)
    before = clipping.clip(one_by_one(network, examples, range(3)))

    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        clipping.clip([*one_by_one(network, examples, [0]), broken])
    with pytest.raises(UserError, match="released (only )?once"):
        before.take()


def test_what_the_loop_cannot_do_is_refused(problem):
    network, flat, examples, _ = problem
    clipping = loop_clipping(flat)
    assert clipping.chunk_size == 1
    with pytest.raises(UserError, match=r"losses of shape \(2,\); loop takes one unit"):
        clipping.clip([lambda: network.loss(examples.batch(np.arange(2)))])
    with pytest.raises(UserError, match="3 layer scales for 2 layers"):
        LoopClipping(flat=flat, release=release_with(layer_scales=(1.0, 1.0, 1.0)))


def test_what_one_example_does_not_use_does_not_keep_the_gradient_of_the_last(problem):
    """Else the example before would be in the sum twice, once under a stranger's factor."""
    network, flat, examples, _ = problem

    def half():
        hidden = network.first(mx.nd.array(examples.inputs[1:2]))
        return hidden.sum(axis=1)

    clipping = loop_clipping(flat)
    with pytest.raises(UserError, match="has no new gradient"):
        clipping.clip([*one_by_one(network, examples, [0]), half])


@pytest.mark.parametrize(
    "squares, factors",
    [
        ([[0.0, 0.0]], [1.0]),
        ([[-1e-9, 4.0]], [0.125]),  # rounding of a Gram matrix; 2 / α = 8
        ([[1e70, 0.0]], [0.0]),  # float32 could not hold the factor
        ([[-np.inf, 1.0], [np.nan, 0.0], [np.inf, 0.0], [1.0, 0.0]], [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_factors_at_the_edges(generator, squares, factors):
    _, flat = network_with(weights_for(generator))
    clipping = loop_clipping(flat)
    assert clipping._factors(np.array(squares)).tolist() == factors
    assert clipping.statistics.non_finite == (~np.isfinite(squares).all(axis=1)).sum()


def test_the_sum_has_no_gradient_between_its_parameters(problem):
    """Padding stays zero, so that no noise of an earlier step can hide there."""
    network, flat, examples, _ = problem
    for drawn in ([3], range(9), []):
        flat.array[:] = 7.0
        total = taken(loop_clipping(flat).clip(one_by_one(network, examples, drawn)))
        used = sum(tensor.size for tensors in tensors_of(flat, total) for tensor in tensors)
        assert used == HIDDEN * WIDTH + HIDDEN + HIDDEN + 1 < flat.size
        assert np.count_nonzero(total) <= used
