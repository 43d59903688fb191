"""GPT-2's GELU as one operator and as several, beside its definition in float64."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd

from edp_mx.models import gelu
from edp_mx.models.quick import quicken
from edp_mx.models.quick.layers import TanhGELU

ROOT = np.sqrt(2 / np.pi)


def by_definition(x):
    """Value ½ x (1 + tanh z) and derivative, z = √(2/π) (x + 0.044715 x³)."""
    x = x.astype(np.float64)
    tanh = np.tanh(ROOT * (x + 0.044715 * x**3))
    slope = ROOT * (1 + 3 * 0.044715 * x**2)
    return x * (1 + tanh) / 2, (1 + tanh) / 2 + x * (1 - tanh**2) * slope / 2


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("is_hybrid", [True, False])
@pytest.mark.parametrize("shape", [(1,), (5, 7, 8), (3, 1 << 15)])
def test_value_and_gradient_are_those_of_the_definition(is_ours, is_hybrid, shape, generator):
    net = mx.gluon.nn.HybridSequential()
    net.add(gelu.TanhGELU())
    if is_ours:
        quicken(net, mx.cpu())
        assert type(net[0]) is TanhGELU
    if is_hybrid:
        net.hybridize(static_alloc=True)
    values, heads = generator.normal(0, 4, (2, *shape)).astype(np.float32)
    values.flat[0] = 100 if values.size == 1 else -100
    x = mx.nd.array(values)
    x.attach_grad()
    for _ in range(2):  # the second time from what was kept of the first
        with autograd.record():
            y = net(x)
        y.backward(mx.nd.array(heads))
    expected, derivative = by_definition(values)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), heads * derivative, rtol=1e-5, atol=1e-5)
