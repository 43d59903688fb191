"""Our self-attention beside GluonNLP's, and its weights beside float64."""

import mxnet as mx
import numpy as np
import pytest
from gluonnlp.model.bert import DotProductSelfAttentionCell
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd, gluon

from edp_mx.kernels import kernels
from edp_mx.models.quick import quicken
from edp_mx.models.quick.attention import SelfAttention
from edp_mx.models.quick.dropout import Mask


def slow(scores, lengths, kept):
    """Shares and weights in float64, row by row."""
    shares = np.zeros(scores.shape)
    heads = len(scores) // len(lengths)
    for b, t in np.ndindex(scores.shape[:2]):
        length = int(lengths[b // heads, t])
        row = np.exp(scores[b, t, :length].astype(np.float64) - scores[b, t, :length].max())
        shares[b, t, :length] = row / row.sum()
    return shares, shares * kept


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.6]),
       st.sampled_from([0.1, 3, 100]), st.integers(0, 2**32 - 1))  # fmt: skip
def test_weights_and_their_gradient(examples, heads, width, rate, spread, seed):
    generator = np.random.default_rng(seed)
    shape = (examples * heads, width, width)
    scores, g = (generator.normal(0, s, shape).astype(np.float32) for s in (spread, 1))
    lengths = generator.integers(1, width + 1, (examples, width)).astype(np.float32)
    mask = Mask(int(generator.integers(2**32)), int(generator.integers(2**32)),
                int(rate * 2**32), 1 / (1 - rate))  # fmt: skip
    kept = np.empty(shape, np.float32)
    kernels().dropout(np.ones(shape, np.float32), out=kept, mask=mask)
    out, shares, back = (np.full(shape, np.nan, np.float32) for _ in range(3))
    kernels().attention_weights(scores, lengths, heads=heads, mask=mask, out=out, shares=shares)
    expected = slow(scores, lengths, kept)
    np.testing.assert_allclose(shares, expected[0], rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(out, expected[1], rtol=2e-5, atol=1e-9)
    kernels().attention_weights_backward(g, shares, mask=mask, out=back)
    dropped = g.astype(np.float64) * kept
    inner = (dropped * expected[0]).sum(-1, keepdims=True)
    np.testing.assert_allclose(back, expected[0] * (dropped - inner), rtol=1e-4, atol=1e-5)


class Reader(gluon.HybridBlock):
    """The cell, alone."""

    def __init__(self, rate):
        super().__init__(prefix="reader_")
        with self.name_scope():
            self.cell = DotProductSelfAttentionCell(24, 4, dropout=rate, prefix="cell_")

    def hybrid_forward(self, F, x, lengths):
        return self.cell(x, lengths)[0]


def made(*, is_ours, rate, record):
    net = Reader(rate)
    net.initialize()
    drawn = np.random.default_rng(5)
    for name, parameter in sorted(net.collect_params().items()):
        parameter.shape = (24, 24) if name.endswith("weight") else (24,)
        parameter.set_data(mx.nd.array(drawn.normal(0, 0.3, parameter.shape)))
    if is_ours:
        quicken(net, mx.cpu())
        assert type(net.cell) is SelfAttention
    net.hybridize(static_alloc=True)
    x = mx.nd.array(drawn.normal(size=(9, 5, 24)))
    lengths = mx.nd.array(drawn.integers(1, 10, (5, 1)).repeat(9, 1), dtype="int32")
    x.attach_grad()
    for _ in range(2):
        with autograd.record(**record):
            y = net(x, lengths)
            loss = (y * y.sin()).sum()
        loss.backward()
    grads = {name: p.grad().asnumpy() for name, p in net.collect_params().items()}
    return {**grads, "x": x.grad.asnumpy(), "y": y.asnumpy()}


@pytest.mark.parametrize("rate, record", [(0.0, {}), (0.5, {"train_mode": False})])
def test_without_masks_it_is_gluonnlps(rate, record):
    ours = made(is_ours=True, rate=rate, record=record)
    theirs = made(is_ours=False, rate=rate, record=record)
    assert ours.keys() == theirs.keys() and len(ours) == 8
    for name, value in ours.items():
        scale = max(1, abs(theirs[name]).max())  # the key's bias has none, but for rounding
        np.testing.assert_allclose(value / scale, theirs[name] / scale, atol=2e-5, err_msg=name)


def test_with_masks_it_is_right_in_the_mean():
    """GluonNLP's dropout draws other masks; the mean over many is the same."""

    def mean(is_ours):
        mx.random.seed(1)
        return np.mean([made(is_ours=is_ours, rate=0.3, record={})["y"] for _ in range(60)], 0)

    ours, theirs = mean(True), mean(False)
    sure = made(is_ours=True, rate=0.0, record={})["y"]
    assert abs(ours - theirs).max() < 0.5 * abs(sure).max()
    assert abs(ours - theirs).mean() < 0.1 * abs(sure).mean() + 0.02


def test_all_our_operators_work_in_one_graph():
    """MXNet keeps one list of what backward passes read, for all operators in Python."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dropout(0.5), gluon.nn.LayerNorm(in_channels=24))
    reader = Reader(0.5)
    for block in (net, reader):
        block.initialize()
        for name, parameter in block.collect_params().items():
            if "cell" in name:
                parameter.shape = (24, 24) if name.endswith("weight") else (24,)
        quicken(block, mx.cpu())
        block.hybridize(static_alloc=True)
    x = mx.nd.ones((9, 5, 24))
    for _ in range(3):
        with autograd.record():
            y = net(reader(net(x), mx.nd.full((5, 9), 4, dtype="int32")))
        y.backward()
        assert np.isfinite(net[1].gamma.grad().asnumpy()).all()
