"""What the installed MXNet computes in bfloat16 on a CPU: dense layers, and no attention."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import MXNetError, autograd


def low(*shape):
    return mx.nd.amp_cast(mx.nd.ones(shape), dtype="bfloat16")


REFUSED = {  # what attention, layer norms and the norms of ghost clipping are made of
    "batch_dot": lambda: mx.nd.batch_dot(low(2, 3, 4), low(2, 3, 4), transpose_b=True),
    "dot": lambda: mx.nd.dot(low(3, 4), low(4, 3)),
    "LayerNorm": lambda: mx.nd.LayerNorm(low(3, 4), low(4), low(4)),
    "attention": lambda: mx.nd.contrib.interleaved_matmul_selfatt_qk(low(5, 2, 24), heads=2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_attention_and_layer_norms_are_refused(name):
    with pytest.raises(MXNetError, match=r"Unknown type enum 12|only supports|Only FP32"):
        REFUSED[name]().wait_to_read()


def test_dense_layers_alone_are_computed_both_ways(generator):
    rows, weight = (mx.nd.array(generator.normal(size=(size, 32))) for size in (16, 8))
    weight.attach_grad()
    found = []
    for kind in ("float32", "bfloat16"):
        with autograd.record():
            given = (mx.nd.amp_cast(each, dtype=kind) for each in (rows, weight))
            out = mx.nd.FullyConnected(*given, no_bias=True, num_hidden=8)
            loss = mx.nd.amp_cast(out, dtype="float32").square().sum()
        loss.backward()
        found.append(weight.grad.asnumpy())
    np.testing.assert_allclose(*found, atol=0.05 * np.abs(found[0]).max())
    assert (found[0] != found[1]).any()
