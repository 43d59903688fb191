"""What the tests of the layers' rules share: layouts, factors, tolerances, single examples."""

import mxnet as mx
import numpy as np
from mxnet import autograd

TIGHT = 1e-5


def laid_out(array, swapped):
    """The same values (N, T, ...), with the second axis first in memory if `swapped`."""
    if not swapped:
        return np.ascontiguousarray(array)
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(array, 0, 1)), 0, 1)


def drawn(seed, *shape):
    """Normal float32 values with a common part, as activations have."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=shape[-1])
    return (generator.normal(size=shape) + 0.5 * common).astype(np.float32)


def drawn_factors(seed, num_examples):
    """Factors in (0, 1]."""
    return 1 - np.random.default_rng(seed).random(num_examples)


def assert_norms(found, gradients, scales=0.0):
    """float64 (N,), those of the oracle's gradients to 1e-5, and to float32 of `scales` (N,).

    A scale is the sum of the norms of an example's terms: where these cancel, float32 sums of them
    are exact to its rounding of the terms, not of the rest.
    """
    exact = np.array([np.sum(np.square(g)) for g in gradients])
    assert found.dtype == np.float64 and found.shape == exact.shape
    error = np.abs(np.sqrt(found) - np.sqrt(exact))
    assert (error <= 0.5 * TIGHT * np.sqrt(exact) + 1e-6 * np.asarray(scales)).all(), error


def assert_sum(found, start, gradients, factors, scale=1.0):
    """start + Σ_i c_i g_i, to float32's rounding."""
    exact = start + sum(c * g for c, g in zip(factors, gradients))
    size = sum(c * np.abs(g) for c, g in zip(factors, gradients)).max() + np.abs(start).max()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=TIGHT, atol=TIGHT * scale * size)


def recorded(operator, inputs, parameters, heads):
    """MXNet's gradients of ⟨heads, operator(inputs, *parameters)⟩ for all parameters."""
    arrays = [mx.nd.array(p) for p in parameters]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        outputs = operator(mx.nd.array(inputs), *arrays)
    outputs.backward(mx.nd.array(heads))
    return [array.grad.asnumpy() for array in arrays]
