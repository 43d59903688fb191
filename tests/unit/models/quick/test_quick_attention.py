"""Our self-attention beside float64, and in its cell beside GluonNLP's."""

import mxnet as mx
import numpy as np
import pytest
from gluonnlp.model.bert import DotProductSelfAttentionCell
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd, gluon

from edp_mx.models.quick import quicken
from edp_mx.models.quick.layers import DRAWS, SelfAttention
from edp_mx.models.quick.library import load_operators

load_operators()


def slow(projected, lengths, kept, heads):
    """The result in float64, head by head, and the softmax (N, heads, T, T).

    `kept` is what dropout multiplies the softmax by, (N, heads, T, T).
    """
    width, examples, units = projected.shape[0], projected.shape[1], projected.shape[2] // 3
    size = units // heads
    shares = np.zeros((examples, heads, width, width))
    context = np.zeros((width, examples, units))
    for n, h in np.ndindex(examples, heads):
        columns = slice(h * size, (h + 1) * size)
        q, k, v = (projected[:, n, i * units :][:, columns] for i in range(3))
        scores = q @ k.T / np.sqrt(size)
        for t in range(width):
            row = scores[t, : int(lengths[n, t])]
            shares[n, h, t, : len(row)] = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        context[:, n, columns] = (shares[n, h] * kept[n, h]) @ v
    return context, shares


def attend(projected, lengths, draws, heads, rate):
    arrays = (mx.nd.array(value) for value in (projected, lengths, draws))
    context, shares = mx.nd.edp_attention(*arrays, heads=str(heads), rate=repr(rate))
    width = len(projected)
    shares = shares.asnumpy().reshape(-1, heads, width, shares.shape[-1])
    assert (shares[..., width:] == 0).all()
    return context.asnumpy(), shares[..., :width]


sizes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 40), st.integers(1, 40))


@given(sizes, st.sampled_from([0.0, 0.1, 0.6]), st.sampled_from([0.1, 1, 8]), st.booleans(),
       st.integers(0, 2**32 - 1))  # fmt: skip
def test_values_by_the_definition(sizes, rate, spread, is_train, seed):
    examples, heads, width, size = sizes
    generator = np.random.default_rng(seed)
    projected = generator.normal(0, spread, (width, examples, 3 * heads * size)).astype(np.float32)
    lengths = generator.integers(1, width + 1, (examples, width)).astype(np.float32)
    draws = generator.choice([0.0, 2.0], DRAWS) if is_train else np.ones(DRAWS)
    context, signed = attend(projected, lengths, draws, heads, rate)
    kept = np.where(np.signbit(signed), 0, 1 / (1 - rate) if is_train else 1)
    assert is_train and rate or (kept == 1).all()
    expected, shares = slow(projected.astype(np.float64), lengths, kept, heads)
    bound = 1e-5 * (1 + spread**2 * size)  # of a score, and so of a share
    np.testing.assert_allclose(abs(signed), shares, rtol=bound, atol=1e-7)
    np.testing.assert_allclose(context, expected, atol=2 * bound * spread * 5 + 1e-6)


@given(sizes, st.sampled_from([0.0, 0.4]), st.integers(0, 2**32 - 1))
def test_the_gradient_is_that_of_the_values(sizes, rate, seed):
    """Along a random direction, by differences of the float64 form under the same mask."""
    examples, heads, width, size = sizes
    generator = np.random.default_rng(seed)
    shape = (width, examples, 3 * heads * size)
    projected, along = generator.normal(0, 0.7, (2, *shape)).astype(np.float32)
    g = generator.normal(size=(width, examples, heads * size)).astype(np.float32)
    lengths = generator.integers(1, width + 1, (examples, width)).astype(np.float32)
    draws = generator.choice([0.0, 2.0], DRAWS)
    kept = np.where(
        np.signbit(attend(projected, lengths, draws, heads, rate)[1]), 0, 1 / (1 - rate)
    )
    x = mx.nd.array(projected)
    x.attach_grad()
    with autograd.record():
        y = mx.nd.edp_attention(
            x, mx.nd.array(lengths), mx.nd.array(draws), heads=str(heads), rate=repr(rate)
        )[0]
    y.backward(mx.nd.array(g))

    def value(step):
        moved = projected.astype(np.float64) + step * along
        return (slow(moved, lengths, kept, heads)[0] * g).sum()

    expected = (value(1e-5) - value(-1e-5)) / 2e-5
    found = (x.grad.asnumpy().astype(np.float64) * along).sum()
    assert abs(found - expected) < 1e-4 * (1 + np.sqrt((g**2).sum() * size))


def test_dropout_takes_what_it_should_and_the_draws_decide_which():
    """Rate, and independence of heads, of neighbours and of other draws."""
    projected, lengths = np.zeros((32, 40, 3 * 8), np.float32), np.full((40, 32), 32, np.float32)
    generator = np.random.default_rng(1)
    lost = [
        np.signbit(attend(projected, lengths, generator.choice([0.0, 2.0], DRAWS), 4, 0.2)[1])
        for _ in range(2)
    ]
    count = lost[0].size
    assert abs(lost[0].sum() - 0.2 * count) < 5 * np.sqrt(count * 0.16)
    flat, other = lost[0].ravel(), lost[1].ravel()
    for one, two in [(flat, other), (lost[0][:, 0], lost[0][:, 1]),
                     *((flat[:-k], flat[k:]) for k in (1, 2, 32, 1024))]:  # fmt: skip
        found = np.corrcoef(one.ravel(), two.ravel())[0, 1]
        assert abs(found) * np.sqrt(one.size) < 5


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
