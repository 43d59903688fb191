"""Pooling: only tokens are seen."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd

from edp_mx.models.pooling import POOLINGS, Pooling

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
