"""Our maximum beside NumPy's, ties and numbers that are none included."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd

from edp_mx.models import pooling
from edp_mx.models.quick import quicken
from edp_mx.models.quick.layers import FirstMax


class Holder(mx.gluon.HybridBlock):
    def __init__(self, axis, *, is_ours):
        super().__init__()
        self.child = pooling.FirstMax(axis)
        if is_ours:
            quicken(self, mx.cpu())
            assert type(self.child) is FirstMax

    def hybrid_forward(self, F, values):
        return self.child(values)


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("is_hybrid", [True, False])
@given(shape=st.tuples(*3 * [st.integers(1, 20)]), axis=st.integers(0, 2), kinds=st.integers(1, 9),
       seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_the_first_of_the_largest_has_the_gradient(is_ours, is_hybrid, shape, axis, kinds, seed):
    generator = np.random.default_rng(seed)
    values = generator.integers(-kinds, kinds, shape).astype(np.float32)  # with ties
    net = Holder(axis, is_ours=is_ours)
    if is_hybrid:
        net.hybridize(static_alloc=True)
    x = mx.nd.array(values)
    x.attach_grad()
    with autograd.record():
        y = net(x)
    heads = generator.normal(size=y.shape).astype(np.float32)
    y.backward(mx.nd.array(heads))
    assert (y.asnumpy() == values.max(axis=axis)).all()
    expected = np.zeros_like(values)
    places = np.expand_dims(values.argmax(axis=axis), axis)
    np.put_along_axis(expected, places, np.expand_dims(heads, axis), axis)
    assert (x.grad.asnumpy() == expected).all()


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_what_is_no_number_is_not_lost(place):
    values = np.array([[3.0], [1.0], [9.0], [-np.inf]], np.float32)
    values[place] = np.nan
    assert np.isnan(Holder(0, is_ours=True)(mx.nd.array(values)).asnumpy()).all()
