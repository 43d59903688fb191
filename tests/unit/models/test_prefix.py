"""A trained prefix: what it does to attention, and what is trained."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from support.models import loss_and_gradients, padded, random_batch, tiny_bert

from edp_mx.models.prefix import VECTORS, PrefixSelfAttention


def attention(length, *, width=4, heads=2):
    """A layer of random weights with a prefix, as MXNet runs it, and its weights."""
    model = tiny_bert(trained="prefix", prefix_length=length, hidden_size=width, num_heads=heads)
    layer = model.encoder.bert.model.encoder.transformer_cells[0].attention_cell
    generator = np.random.default_rng(1)
    found = {}
    for name, parameter in layer.collect_params().items():
        parameter.set_data(mx.nd.array(generator.normal(size=parameter.shape)))
        found[name[len(layer.prefix) :]] = parameter.data().asnumpy()
    return layer, found


@pytest.mark.parametrize("length", [1, 3])
def test_queries_see_the_prefix_and_their_own_pieces(length, generator):
    """Against the formula, head by head."""
    layer, w = attention(length)
    assert isinstance(layer, PrefixSelfAttention)
    x, lengths = generator.normal(size=(5, 2, 4)).astype(np.float32), np.array([5, 3])
    valid = mx.nd.array(np.repeat(lengths[:, None], 5, axis=1), dtype="int32")
    found = layer(mx.nd.array(x), valid)[0].asnumpy()  # (T, N, C)
    assert found.shape == x.shape
    for n, count in enumerate(lengths):
        q, k, v = (x[:, n] @ w[f"{p}_weight"].T + w[f"{p}_bias"] for p in ("query", "key", "value"))
        k = np.concatenate([w[VECTORS][:, :4], k[:count]])
        v = np.concatenate([w[VECTORS][:, 4:], v[:count]])
        for part in (slice(0, 2), slice(2, 4)):
            scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(2))
            expected = scores / scores.sum(axis=1, keepdims=True) @ v[:, part]
            np.testing.assert_allclose(found[:count, n, part], expected[:count], rtol=1e-4)


def test_prefixes_and_heads_are_trained(generator, monkeypatch):
    batch = random_batch(generator, [3, 1, 5], "bert")
    model = tiny_bert(trained="prefix", prefix_length=2)
    losses, gradients = loss_and_gradients(model, batch)
    encoders = {name for name in gradients if name.startswith("bert_")}
    assert len(encoders) == 2 and all(name.endswith(VECTORS) for name in encoders)
    assert all(np.abs(gradients[name]).max() > 0 for name in encoders)
    np.testing.assert_allclose(model.loss(padded(batch)).asnumpy(), losses, rtol=1e-5)
    monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    theirs = loss_and_gradients(tiny_bert(trained="prefix", prefix_length=2), batch)
    np.testing.assert_allclose(losses, theirs[0], rtol=1e-5)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, theirs[1][name], atol=1e-5, err_msg=name)
