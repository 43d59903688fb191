"""The network of GPT-2: layers that normalise first, in which a piece sees only those before it."""

from __future__ import annotations

import math
from typing import Iterable, List, Tuple

import mxnet as mx
import numpy as np
from gluonnlp.model.bert import DotProductSelfAttentionCell
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.models.gelu import TanhGELU
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.id_ranges import check_pieces
from edp_mx.models.trained_parts import freeze_lowest, settled_values

_INITIAL_STDDEV = 0.02


class DecoderLayer(gluon.HybridBlock):
    """Self-attention and a feed-forward layer, each over normalised rows and added to them.

    Shapes: rows (P, N, H), visible (N, P), how many pieces each piece sees → (P, N, H).
    Source: Radford et al. 2019, section 2.3.
    """

    def __init__(self, config: GPT2Config, **block: str) -> None:
        super().__init__(**block)
        hidden, intermediate = config.hidden_size, config.intermediate_size
        with self.name_scope():
            self.attention_norm = _norm(config, prefix="attention_norm_")
            self.attention = DotProductSelfAttentionCell(
                hidden, config.num_heads, dropout=config.dropout, prefix="attention_"
            )
            self.proj = _dense(hidden, hidden, prefix="proj_")
            self.ffn_norm = _norm(config, prefix="ffn_norm_")
            self.ffn_1 = _dense(hidden, intermediate, prefix="ffn_1_")
            self.ffn_2 = _dense(intermediate, hidden, prefix="ffn_2_")
            self.activation = TanhGELU(prefix="")
            self.dropout = nn.Dropout(config.dropout)

    def hybrid_forward(self, F, rows, visible):  # noqa: ARG002
        attended, _ = self.attention(self.attention_norm(rows), visible)  # (P, N, H)
        rows = rows + self.dropout(self.proj(attended))
        return rows + self.dropout(self.fed_forward(rows))

    def fed_forward(self, rows):
        """Return the feed-forward layer of normalised rows. Shapes: (..., H) → (..., H)."""
        return self.ffn_2(self.activation(self.ffn_1(self.ffn_norm(rows))))


class GPT2(gluon.HybridBlock):
    """A GPT-2 without its output layer.

    Args:
        config: its sizes.
        num_pieces: V.

    Shapes: pieces (N, P) → states behind the last layer norm (N, P, H).
    """

    def __init__(self, config: GPT2Config, *, num_pieces: int, **block: str) -> None:
        super().__init__(**block)
        self.config, self.num_pieces = config, num_pieces
        with self.name_scope():
            self.word_embed = nn.Embedding(num_pieces, config.hidden_size, prefix="word_embed_")
            self.position_weight = self.params.get(
                "position_weight", shape=(config.max_positions, config.hidden_size)
            )
            self.dropout = nn.Dropout(config.dropout)
            self.layers = nn.HybridSequential(prefix="")
            for i in range(config.num_layers):
                self.layers.add(DecoderLayer(config, prefix=f"layer{i}_"))
            self.norm = _norm(config, prefix="norm_")
        freeze_lowest(config, self.embedding_parameters(), self.layers)

    @property
    def piece_embedding(self) -> gluon.Parameter:
        """Vectors of the pieces, (V, H)."""
        return self.word_embed.weight

    def embedding_parameters(self) -> List[gluon.Parameter]:
        """Return the vectors of pieces and positions."""
        return [self.piece_embedding, self.position_weight]

    def inputs(self, batch: Batch, context: mx.Context) -> mx.nd.NDArray:
        """Return the pieces (N, P) of a batch, checked."""
        most = self.config.max_positions
        check_pieces(batch.pieces, num_pieces=self.num_pieces, max_positions=most)
        return mx.nd.array(batch.pieces.pieces, ctx=context, dtype="int32")

    def hybrid_forward(self, F, pieces, position_weight):
        rows = self.dropout(self.embedded(F, pieces, position_weight))  # (N, P, H)
        rows = through(F, F.swapaxes(rows, 0, 1), self.layers._children.values())  # (P, N, H)
        return F.swapaxes(self.norm(rows), 0, 1)

    def embedded(self, F, pieces, position_weight):
        """Return the vectors of pieces at their positions. Shapes: (N, P) → (N, P, H)."""
        steps = F.contrib.arange_like(pieces, axis=1)  # (P,)
        positions = F.Embedding(
            steps,
            position_weight,
            input_dim=self.config.max_positions,
            output_dim=self.config.hidden_size,
        )  # (P, H)
        return F.broadcast_add(self.word_embed(pieces), F.expand_dims(positions, axis=0))


def through(F, rows, layers: Iterable[DecoderLayer]):
    """Return rows behind some layers. Shapes: (P, N, H) → (P, N, H)."""
    steps = F.contrib.arange_like(rows, axis=0) + 1  # (P,)
    zeros = F.zeros_like(F.contrib.arange_like(rows, axis=1))  # (N,)
    visible = F.broadcast_add(F.reshape(zeros, (-1, 1)), F.reshape(steps, (1, -1)))  # (N, P)
    visible = F.cast(visible, dtype="int32")
    for layer in layers:
        rows = layer(rows, visible)
    return rows


def initial_gpt2_values(
    name: str, shape: Tuple[int, ...], generator: np.random.Generator, *, num_layers: int
) -> np.ndarray:
    """Draw GPT-2's first values: normal with σ = 0.02; layer norms at identity.

    The weights whose outputs are added to the rows have σ = 0.02 / √(2 L). Parameters that a
    `TrainedPart` adds are drawn as it likes.

    Source: Radford et al. 2019, section 2.3 and published code.
    """
    if (settled := settled_values(name, shape, generator)) is not None:
        return settled
    is_added = name.endswith(("proj_weight", "ffn_2_weight"))
    stddev = _INITIAL_STDDEV / math.sqrt(2 * num_layers) if is_added else _INITIAL_STDDEV
    return stddev * generator.standard_normal(shape)


def _norm(config: GPT2Config, prefix: str) -> nn.LayerNorm:
    return nn.LayerNorm(
        epsilon=config.layer_norm_epsilon, in_channels=config.hidden_size, prefix=prefix
    )


def _dense(num_in: int, num_out: int, prefix: str) -> nn.Dense:
    return nn.Dense(num_out, in_units=num_in, flatten=False, prefix=prefix)
