"""α: where it comes from and how it is normalised."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd
from mxnet.gluon import nn
from support.golden_vectors import cases

from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layer_scales import FLOOR, normalise_scales, scales_by_norm, scales_by_size
from edp_mx.privacy.layers import layers_of


@pytest.mark.parametrize("case", cases("floor_alpha"), ids=lambda case: case["id"])
def test_golden(case):
    assert case["inputs"]["rel_floor"] == FLOOR
    np.testing.assert_allclose(
        normalise_scales(case["inputs"]["alpha"]), case["expected"]["alpha"], rtol=case["rtol"]
    )


@given(st.lists(st.floats(0, 1e30), min_size=1, max_size=20))
def test_the_largest_is_one_and_none_is_below_the_floor(scales):
    result = normalise_scales(scales)
    assert max(result) == 1
    assert min(result) >= FLOOR


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]])
def test_what_cannot_be_normalised_becomes_ones(bad):
    assert normalise_scales(bad) == (1.0, 1.0)


def test_by_size_and_by_norm():
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(4, in_units=4, use_bias=False), nn.Dense(1, in_units=4, use_bias=False))
    net.initialize()
    flat = FlatGradients(layers_of(net))
    assert scales_by_size(flat) == (1.0, 0.5)
    with autograd.record():
        loss = net(mx.nd.ones((2, 4))).sum()
    loss.backward()
    norms = [np.linalg.norm(block.weight.grad().asnumpy()) for block in net]
    others = np.array([3.0, 0.0])  # another worker's norms: all must end with the same scales
    scales = scales_by_norm(flat, lambda mine: (mine + others) / 2)
    expected = (np.array(norms) + others) / 2
    np.testing.assert_allclose(scales, np.maximum(expected / expected.max(), FLOOR), rtol=1e-6)
