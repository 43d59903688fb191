"""The shapes of a BERT's weights, and functions of the states of its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mxnet as mx
from gluonnlp.model import BERTModel

if TYPE_CHECKING:
    from edp_mx.models.bert import BERTConfig


def settle_shapes(model: BERTModel, config: BERTConfig) -> None:
    """Set the shapes that GluonNLP would infer from a first batch: copying weights needs them."""
    hidden, intermediate = config.hidden_size, config.intermediate_size
    if hasattr(model, "pooler"):
        model.pooler.weight.shape = (hidden, hidden)
    for cell in model.encoder.transformer_cells:
        cell.proj.weight.shape = (hidden, hidden)
        cell.ffn.ffn_1.weight.shape = (intermediate, hidden)
        cell.ffn.ffn_2.weight.shape = (hidden, intermediate)


def lower_states(model: BERTModel, pieces, piece_lengths, *, num_layers: int):
    """Return the states above the lowest layers. Shapes: (N, P), (N,) → (N, P, H)."""
    F = mx.nd
    rows = model.word_embed(pieces) + model.token_type_embed(F.zeros_like(pieces))  # (N, P, H)
    positions = model.encoder.position_weight.data()[: pieces.shape[1]]  # (P, H)
    rows = model.encoder.layer_norm(F.broadcast_add(rows, F.expand_dims(positions, axis=0)))
    rows = F.swapaxes(rows, 0, 1)  # (P, N, H)
    visible = visible_lengths(F, rows, piece_lengths)  # (N, P)
    for i in range(num_layers):
        rows, _ = model.encoder.transformer_cells[i](rows, visible)
    return F.swapaxes(rows, 0, 1)


def visible_lengths(F, rows, piece_lengths):
    """Return how many pieces each piece sees. Shapes: (P, N, H), (N,) → (N, P) int32."""
    zeros = F.zeros_like(F.contrib.arange_like(rows, axis=0))  # (P,)
    visible = F.broadcast_add(F.reshape(piece_lengths, (-1, 1)), F.reshape(zeros, (1, -1)))
    return F.cast(visible, dtype="int32")


def normalised(F, vectors):
    """Return vectors of mean 0 and variance 1. Shapes: (N, P, H) → (N, P, H)."""
    vectors = F.broadcast_sub(vectors, F.mean(vectors, axis=2, keepdims=True))
    variance = F.mean(F.square(vectors), axis=2, keepdims=True)  # (N, P, 1)
    return F.broadcast_div(vectors, F.sqrt(variance + 1e-6))


def piece_means(F, layers, piece_lengths):
    """Return the means over the pieces. Shapes: G arrays (N, P, H), (N,) → (N, G H)."""
    rows = F.concat(*layers, dim=2)  # (N, P, G H)
    spoken = F.SequenceMask(rows, piece_lengths, use_sequence_length=True, axis=1)
    return F.broadcast_div(F.sum(spoken, axis=1), F.reshape(piece_lengths, (-1, 1)))


def at_tokens(F, sequence, firsts):
    """Return the states at the first pieces. Shapes: (N, P, H), (N, T) → (N, T, H)."""
    rows = F.expand_dims(F.contrib.arange_like(firsts, axis=0), axis=1)  # (N, 1)
    places = F.stack(F.broadcast_like(rows, firsts), firsts, axis=0)  # (2, N, T)
    return F.gather_nd(sequence, places)
