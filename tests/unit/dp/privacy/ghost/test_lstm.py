"""The LSTM in NumPy against single examples in float64, and at its edges."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.dp.privacy.ghost.lstm import clipped_sums, squared_norms
from edp_mx.runtime import lstm_pass
from edp_mx.runtime.lstm_pass import LSTMMemory, LSTMWeights
from edp_mx.runtime.packing import Packing

NAMES = ("i2h", "h2h", "i2h_bias", "h2h_bias")
shapes = st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 7), st.integers(1, 6))
seeds = st.integers(0, 2**32 - 1)


def normal(generator, *shape, scale=1.0):
    return (scale * generator.standard_normal(shape)).astype(np.float32)


def drawn_weights(generator, size, width, scale=0.5):
    shapes_of = ((4 * width, size), (4 * width, width), (4 * width,), (4 * width,))
    return LSTMWeights(*(normal(generator, *shape, scale=scale) for shape in shapes_of))


def forward(inputs, weights, packing=None):
    """All steps; the states and what `backward` needs."""
    packing, width = packing or Packing.whole(*inputs.shape[:2]), weights.h2h.shape[1]
    memory = LSTMMemory.empty(packing.num_rows, width)
    states = np.empty((*inputs.shape[:2], width), np.float32)
    lstm_pass.forward(inputs, weights, packing, states=states, memory=memory)
    return states, memory


def backward(state_gradients, weights, memory, packing=None):
    """Gradients of the inputs and of the gates."""
    shape = state_gradients.shape[:2]
    packing = packing or Packing.whole(*shape)
    gates = lstm_pass.backward(state_gradients, weights.h2h, packing, memory)
    return [packing.spread(rows, (*shape, rows.shape[1])) for rows in (gates @ weights.i2h, gates)]


def zeros_like(weights):
    return [np.zeros_like(part) for part in fields(weights)]


def fields(weights):
    return [getattr(weights, name) for name in NAMES]


def lengths_to_mask(lengths, num_steps):
    return (np.arange(num_steps)[:, None] < np.asarray(lengths)).astype(np.float32)  # (T, N)


def single_example(inputs, weights, state_gradients):
    """States (T, H), input gradients (T, I) and weight gradients of one example, in float64.

    Gate by gate and step by step, as in the textbook; nothing is shared with the code under test.
    """
    w, u, b, c = (np.asarray(array, np.float64) for array in fields(weights))
    x, dy = np.asarray(inputs, np.float64), np.asarray(state_gradients, np.float64)
    width, steps = u.shape[1], []
    h, cell = np.zeros(width), np.zeros(width)
    for t in range(len(x)):
        i, f, g, o = np.split(w @ x[t] + b + u @ h + c, 4)
        i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        g = np.tanh(g)
        before, h_before = cell, h
        cell = f * before + i * g
        h = o * np.tanh(cell)
        steps.append((i, f, g, o, before, h_before, cell, h))
    dx, grads = np.zeros_like(x), [np.zeros_like(array) for array in (w, u, b, c)]
    dh_next, dcell_next = np.zeros(width), np.zeros(width)
    for t in reversed(range(len(x))):
        i, f, g, o, before, h_before, cell, _ = steps[t]
        dh = dy[t] + dh_next
        dcell = dcell_next + dh * o / np.cosh(cell) ** 2
        dz = np.concatenate(
            [
                dcell * g * i * (1 - i),
                dcell * before * f * (1 - f),
                dcell * i * (1 - g**2),
                dh * np.tanh(cell) * o * (1 - o),
            ]
        )
        for total, part in zip(grads, (np.outer(dz, x[t]), np.outer(dz, h_before), dz, dz)):
            total += part
        dx[t], dh_next, dcell_next = w.T @ dz, u.T @ dz, dcell * f
    return np.array([step[-1] for step in steps]), dx, grads


def assert_exact(squared, gradients, inputs):
    """‖Σ_t g_t a_tᵀ‖ to 5e-6 of itself, or to 2e-7 of Σ_t ‖g_t‖ ‖a_t‖ where the steps cancel."""
    g, a = gradients.astype(np.float64), inputs.astype(np.float64)
    expected = np.linalg.norm(np.einsum("tng,tna->nga", g, a), axis=(1, 2))
    bound = (np.linalg.norm(g, axis=2) * np.linalg.norm(a, axis=2)).sum(axis=0)  # (N,)
    assert (squared >= 0).all()
    assert (np.abs(np.sqrt(squared) - expected) <= 5e-6 * expected + 2e-7 * bound).all()


def close(ours, theirs, tolerance, scale=1e-30):
    """Equal up to `tolerance` times the largest value, or times `scale` if that is more."""
    assert np.shape(ours) == np.shape(theirs)
    scale = max(np.abs(theirs).max(initial=0.0), scale)
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=tolerance)


@given(shape=shapes, seed=seeds, is_reverse=st.booleans(), data=st.data())
def test_norms_and_clipped_sums_are_those_of_single_examples(shape, seed, is_reverse, data):
    """Read backwards, of the turned utterances; what is padded counts nothing."""
    num_steps, num_examples, size, width = shape
    generator = np.random.default_rng(seed)
    lengths = data.draw(st.lists(st.integers(1, num_steps), min_size=num_examples))[:num_examples]
    weights = drawn_weights(generator, size, width)
    x = normal(generator, num_steps, num_examples, size)
    dy = normal(generator, num_steps, num_examples, width)
    factors = generator.uniform(0, 1, num_examples)

    packing = Packing.of(np.array(lengths), reverse=is_reverse)
    states, memory = forward(x, weights, packing)
    input_gradients, gate_gradients = backward(dy, weights, memory, packing)
    norms = squared_norms(x, states, gate_gradients, is_reverse=is_reverse)
    totals = [np.ones_like(part) for part in fields(weights)]  # what is there stays
    clipped_sums(x, states, packing.pack(gate_gradients), packing, factors, totals=totals)

    sums = [0.0] * 4
    for n, length in enumerate(lengths):
        order = np.arange(length)[:: -1 if is_reverse else 1]
        single_states, dx, grads = single_example(x[order, n], weights, dy[order, n])
        close(states[order, n], single_states, 1e-6, scale=1)
        close(input_gradients[order, n], dx, 1e-5, scale=np.abs(dy[:, n]).max())
        assert not any(array[length:, n].any() for array in (states, input_gradients))
        squares = [np.square(grad).sum() for grad in grads]
        ours = [norm[n] for norm in norms]
        np.testing.assert_allclose(ours, squares, rtol=1e-4, atol=1e-5 * sum(squares))
        np.testing.assert_allclose(sum(norms)[n], sum(squares), rtol=5e-5)
        sums = [total + factors[n] * grad for total, grad in zip(sums, grads)]
    scale = np.sqrt(sum(np.square(total).sum() for total in sums))
    for ours, theirs in zip(totals, sums):
        np.testing.assert_allclose(ours - 1, theirs, rtol=0, atol=2e-5 * scale + 1e-6)


def assert_exact_norms(x, h, g):
    norms = squared_norms(x, h, g)
    assert_exact(norms[0], g, x)
    assert_exact(norms[1], g[1:], h[:-1])
    assert_exact(norms[2], g, np.ones((*x.shape[:2], 1)))


@given(shape=shapes, seed=seeds, likeness=st.sampled_from([0, 1e-3, 1.0]))
def test_norms_are_exact_whatever_the_steps_are(shape, seed, likeness):
    num_steps, num_examples, size, width = shape
    generator = np.random.default_rng(seed)
    x, h = (normal(generator, num_steps, num_examples, n) for n in (size, width))
    g = normal(generator, num_steps, num_examples, 4 * width)
    if likeness:  # steps that almost repeat, or almost undo, the first one
        signs = generator.choice(np.float32([-1, 1]), (num_steps, num_examples, 1))
        near = np.float32(1e-2 * likeness)
        x, h, g = x[:1] + near * x, h[:1] + near * h, signs * (g[:1] + near * g)
    assert_exact_norms(x, h, g)


@pytest.mark.parametrize("shape", [(24, 6, 768, 384), (40, 9, 3, 30), (400, 9, 3, 30)])
def test_norms_are_exact_for_wide_layers_and_long_sequences(generator, shape):
    num_steps, num_examples, size, width = shape
    lengths = generator.integers(1, num_steps + 1, num_examples)
    x, h = (normal(generator, num_steps, num_examples, n) for n in (size, width))
    mask = lengths_to_mask(lengths, num_steps)
    assert_exact_norms(x, h, normal(generator, *shape[:2], 4 * width) * mask[:, :, None])


def peak_memory(function, *arguments):
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_holds_neither_all_gradients_nor_long_squares(generator):
    wide = [normal(generator, 4, 64, n) for n in (256, 256, 1024)]
    assert peak_memory(squared_norms, *wide) < 4e6  # all gradients: 67 MB
    long = [normal(generator, 400, 50, n) for n in (2, 2, 8)]
    assert peak_memory(squared_norms, *long) < 4e6  # all T × T squares: 32 MB each
    both = [normal(generator, 400, 50, n) for n in (256, 256, 1024)]
    assert peak_memory(squared_norms, *both) < 20e6  # all T × T squares 32 MB, gradients 52 MB


@pytest.mark.parametrize("sign", [-1, 1])
def test_saturated_gates_are_exact_and_silent(generator, sign):
    """16 units: each of their four gates far to one side or the other, in all combinations."""
    weights = drawn_weights(generator, 3, 16)
    sides = np.float32([1 - 2 * (unit >> gate & 1) for gate in range(4) for unit in range(16)])
    weights.i2h[:] = sides[:, None] * (abs(weights.i2h) + np.float32(0.1))  # no sum near zero
    x = np.full((5, 2, 3), sign * 1e4, np.float32)
    dy = normal(generator, 5, 2, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        states, memory = forward(x, weights)
        input_gradients, gate_gradients = backward(dy, weights, memory)
        norms = squared_norms(x, states, gate_gradients)
    with np.errstate(over="ignore"):
        expected = [single_example(x[:, n], weights, dy[:, n]) for n in range(2)]
    for n, (single_states, dx, _) in enumerate(expected):
        np.testing.assert_allclose(states[:, n], single_states, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(input_gradients[:, n], dx, rtol=1e-4, atol=1e-6)
    assert np.isfinite(sum(norms)).all()


def test_an_example_that_is_not_finite_stays_alone_and_can_be_left_out(generator):
    weights = drawn_weights(generator, 3, 2)
    x, dy = normal(generator, 4, 3, 3), normal(generator, 4, 3, 2)
    spoilt = x.copy()
    spoilt[2, 1] = np.nan

    def run(inputs, factors):
        totals = zeros_like(weights)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            states, memory = forward(inputs, weights)
            _, gate_gradients = backward(dy, weights, memory)
            norms = sum(squared_norms(inputs, states, gate_gradients))
            packing = Packing.whole(4, 3)
            gates = packing.pack(gate_gradients)
            clipped_sums(inputs, states, gates, packing, np.array(factors), totals=totals)
        return norms, totals

    norms, totals = run(x, [0.5, 0.0, 1.0])
    spoilt_norms, spoilt_totals = run(spoilt, [0.5, 0.0, 1.0])
    assert np.isnan(spoilt_norms[1])
    np.testing.assert_array_equal(spoilt_norms[[0, 2]], norms[[0, 2]])
    for total, spoilt_total in zip(totals, spoilt_totals):
        assert total.any()
        np.testing.assert_array_equal(spoilt_total, total)
    _, nothing = run(spoilt, [0.0, 0.0, 0.0])
    assert not any(total.any() for total in nothing)
