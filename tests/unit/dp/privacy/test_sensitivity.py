"""One unit moves the sum by C at most, however many others there are: what all noise rests on."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet.gluon import nn
from support.prescribed import flat_of, losses_with, taken
from support.releases import release_with

from edp_mx.dp.accounting.clippings import CLIP_RULES
from edp_mx.dp.privacy import running_sum
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.dp.privacy.running_sum import add_scaled

SHAPES = [(3,), (2, 2)]
SCALES = (1.0, 0.25)


def awkward(batch, k):
    """Numbers of at most 1 whose float32 sum moves by 2 when a 1 is put among them."""
    u = 2.0 ** (k - 24)
    return [0.5] + [1.0] * (2**k - 1), [-u] * (batch - 2**k - 1)


def test_the_example_is_one():
    """In float32, one after the other: with the 1 the small ones are rounded away."""
    head, tail = awkward(8192, 12)

    def summed(values):
        return np.cumsum(np.float32(values), dtype=np.float32)[-1]  # cumsum adds in order

    assert summed([*head, 1.0, *tail]) - summed([*head, *tail]) > 1.999


def one_number():
    network = nn.Dense(1, in_units=1, use_bias=False, prefix="one_")
    network.initialize(mx.init.Zero())
    return network, FlatGradients(layers_of(network))


def moved_by_one(clipping, chunks_of):
    """How far the sum of the awkward numbers moves when one more unit of norm 1 is there."""
    head, tail = awkward(1024, 9)
    u = 2.0 ** (9 - 24)
    with_it = taken(clipping.clip(chunks_of([*head, 1.0, *tail])))[0]
    without = taken(clipping.clip(chunks_of([*head, *tail])))[0]
    assert without == pytest.approx(0.5 + 511 - u * len(tail), abs=1e-9)
    return with_it - without


def test_the_loop_does_not_round_units_away():
    network, flat = one_number()
    clipping = LoopClipping(flat=flat, release=release_with())

    def chunks_of(values):
        return [lambda x=x: network(mx.nd.array([[x]])).reshape((1,)) for x in values]

    assert moved_by_one(clipping, chunks_of) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("size", [1, 8])
def test_ghost_clipping_does_not_round_chunks_away(size):
    network, flat = one_number()
    clipping = GhostClipping(flat=flat, network=network, release=release_with(), chunk_size=size)

    def chunks_of(values):
        parts = [values[i : i + size] for i in range(0, len(values), size)]
        return [lambda p=p: network(mx.nd.array(p).reshape((-1, 1))).reshape((-1,)) for p in parts]

    # In a chunk of n units float32 errs by less than n² 2⁻²⁴ C; one unit shifts all later chunks.
    slack = 1e-9 if size == 1 else 1e-5
    head, tail = awkward(512, 7)
    with_it = taken(clipping.clip(chunks_of([*head, *tail, 1.0])))[0]
    without = taken(clipping.clip(chunks_of([*head, *tail])))[0]
    assert with_it - without == pytest.approx(1.0, abs=slack)
    assert without == pytest.approx(0.5 + 127 - 2.0**-17 * len(tail), abs=128 * slack)


values = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, 1e-30, 2.0**-24, 1e6, -1e18, 1e30, float("inf"), float("nan")]),
)
gradients = st.lists(values, min_size=7, max_size=7)


def put(flat, gradient):
    array = np.zeros(flat.size, np.float32)
    array[flat.segments[0].start :][:3] = gradient[:3]
    array[flat.segments[1].start :][:4] = gradient[3:]
    return array


@pytest.mark.parametrize("rule", CLIP_RULES)
@given(st.lists(gradients, max_size=6), gradients, st.integers(0, 6), st.floats(1e-3, 1e3))
def test_one_unit_moves_the_sum_by_the_clipping_norm_at_most(rule, others, one, place, c):
    """Whatever its gradient is, and the others' are: in the scaled space."""
    flat = flat_of(SHAPES)
    clipping = LoopClipping(
        flat=flat, release=release_with(max_grad_norm=c, layer_scales=SCALES, clip_rule=rule)
    )
    units = [losses_with(flat, put(flat, gradient)) for gradient in others]
    without = taken(clipping.clip(units))
    units.insert(place, losses_with(flat, put(flat, one)))
    with_it = taken(clipping.clip(units))
    scaled = np.zeros(flat.size)
    for segment, scale in zip(flat.segments, SCALES):
        scaled[segment] = (with_it - without)[segment] / scale
    assert np.isfinite(with_it).all()
    assert np.linalg.norm(scaled) <= clipping.release.max_grad_norm * (1 + 1e-6)


@pytest.mark.parametrize(
    "c, scales, gradient",
    [
        (1e-25, (1.0, 1.0), [1e-23] * 7),  # whose squares are 0 in float32
        (1e-30, (1.0, 0.01), [0.0] * 3 + [1e-27] * 4),
        (1e-9, (1.0, 1e-16), [1e-12] * 3 + [1e-24] * 4),  # long only once it is scaled
    ],
)
def test_what_float32_cannot_square_is_clipped_too(c, scales, gradient):
    flat = flat_of(SHAPES)
    clipping = LoopClipping(flat=flat, release=release_with(max_grad_norm=c, layer_scales=scales))
    total = taken(clipping.clip([losses_with(flat, put(flat, gradient))]))
    scaled = [total[part] / scale for part, scale in zip(flat.segments, scales)]
    assert np.linalg.norm(np.concatenate(scaled)) == pytest.approx(c, rel=1e-5)
    assert clipping.statistics.clipped == 1


@pytest.mark.parametrize("size", [1, 5, running_sum.PIECE + 17])
def test_scaled_arrays_are_added_in_float64(size, generator):
    total, values = generator.normal(size=size), generator.normal(size=size).astype(np.float32)
    expected = total + 0.3 * values.astype(np.float64)
    add_scaled(total, values, factor=0.3)
    np.testing.assert_allclose(total, expected, rtol=1e-15, atol=1e-15)
