"""GPT-2 one piece after another: the keys and values of the pieces before are kept, not recomputed.

Nothing is recorded and no hybrid graph runs: the arrays grow with each step.
"""

from __future__ import annotations

import math
from typing import List, Optional, Sequence, Tuple

import mxnet as mx
from mxnet import autograd, gluon

from edp_mx.models.gpt2.decoder import GPT2, DecoderLayer
from edp_mx.models.lora import PROJECTIONS
from edp_mx.models.prefix import PrefixSelfAttention

Past = List[mx.nd.NDArray]  # of each layer the keys, then the values (N, S, H) of S pieces


def step(
    decoder: GPT2, pieces: mx.nd.NDArray, past: Optional[Past] = None
) -> Tuple[mx.nd.NDArray, Past]:
    """Return the scores of all pieces behind some more pieces, and keys and values with theirs.

    Args:
        past: of the pieces before; None where there are none.

    Shapes: pieces (N, Q) int32 → (N, V), 2 L arrays (N, S + Q, H), S with a layer's prefix.
    """
    F, context = mx.nd, pieces.context
    first = decoder.layers[0].attention
    start = 0 if past is None else past[0].shape[1] - getattr(first, "length", 0)
    with autograd.pause(train_mode=False):
        positions = decoder.position_weight.data(context)[start : start + pieces.shape[1]]  # (Q, H)
        rows = F.broadcast_add(decoder.word_embed(pieces), F.expand_dims(positions, axis=0))
        grown: Past = []
        for i, layer in enumerate(decoder.layers):
            before = None if past is None else past[2 * i : 2 * i + 2]
            rows, kept = _layer_step(layer, rows, before)
            grown += kept
        last = decoder.norm(rows[:, -1])  # (N, H)
        table = decoder.piece_embedding.data(context)
        scores = F.FullyConnected(last, table, no_bias=True, num_hidden=decoder.num_pieces)
    return scores, grown


def _layer_step(
    layer: DecoderLayer, rows: mx.nd.NDArray, past: Optional[Sequence[mx.nd.NDArray]]
) -> Tuple[mx.nd.NDArray, Past]:
    """Return a layer's rows (N, Q, H), and its keys and values (N, S + Q, H)."""
    F, attention = mx.nd, layer.attention
    normed = layer.attention_norm(rows)
    query, *kept = (_projected(attention, name, normed) for name in PROJECTIONS)
    if past is None and isinstance(attention, PrefixSelfAttention):
        past = attention.trained_prefix.keys_and_values(len(rows), rows.context)
    if past is not None:
        kept = [F.concat(*both, dim=1) for both in zip(past, kept)]
    heads = attention._num_heads
    queries, keys, values = (_by_head(each, heads) for each in (query, *kept))  # (N·heads, …, c)
    scores = F.batch_dot(queries, keys, transpose_b=True) / math.sqrt(queries.shape[2])
    num_new, num_all = rows.shape[1], keys.shape[1]
    visible = F.arange(num_all - num_new + 1, num_all + 1, ctx=rows.context)  # (Q,)
    visible = F.broadcast_to(visible.reshape((1, -1)), (len(scores), num_new)).astype("int32")
    shares = F.softmax(scores, length=visible, use_length=True, axis=-1)  # (N·heads, Q, S + Q)
    together = F.batch_dot(shares, values)  # (N·heads, Q, c)
    together = F.reshape(together, (-4, -1, heads, 0, 0))  # (N, heads, Q, c)
    attended = F.reshape(F.swapaxes(together, 1, 2), (0, 0, -1))  # (N, Q, H)
    rows = rows + layer.proj(attended)
    return rows + layer.fed_forward(rows), kept


def _projected(attention: gluon.Block, name: str, rows: mx.nd.NDArray) -> mx.nd.NDArray:
    """Return queries, keys or values, with what their adapter adds. Shapes: → (N, Q, H)."""
    arrays = (getattr(attention, f"{name}_{end}").data(rows.context) for end in ("weight", "bias"))
    out = mx.nd.FullyConnected(rows, *arrays, num_hidden=attention.units, flatten=False)
    adapter = getattr(attention, f"{name}_adapter", None)
    return out if adapter is None else out + adapter(rows)


def _by_head(rows: mx.nd.NDArray, heads: int) -> mx.nd.NDArray:
    """Shapes: (N, S, H) → (N·heads, S, c)."""
    parts = mx.nd.swapaxes(mx.nd.reshape(rows, (0, 0, -4, heads, -1)), 1, 2)  # (N, heads, S, c)
    return mx.nd.reshape(parts, (-3, 0, 0))
