"""Token features from characters: embedding, convolution, ReLU, and the maximum over a token."""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models.pooling import FirstMax


class CharCNN(gluon.HybridBlock):
    """One feature vector per token, from its characters (0 is padding, 1 unknown) alone.

    Shapes: characters (N, T, C), integers → (N, T, filters); N and T may be swapped.
    Edge cases: padding changes nothing: its vector is 0, and its outputs of 0 never exceed those of
    a ReLU. A token without characters gives zeros.
    Source: Ma & Hovy 2016, section 2.1.
    Departs: a ReLU follows the convolution; no dropout on the characters' vectors.
    """

    def __init__(
        self,
        num_characters: int,
        *,
        dimension: int = 30,
        filters: int = 30,
        width: int = 3,
        **block: str,
    ) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.embedding = nn.Embedding(num_characters, dimension, prefix="embedding_")
            self.convolution = nn.Conv1D(
                filters, width, padding=width // 2, in_channels=dimension, prefix="convolution_"
            )
            self.first_max = FirstMax(axis=2)

    def hybrid_forward(self, F, characters):
        spelled = F.reshape(characters, shape=(-3, 0))  # (N·T, C)
        is_character = F.cast(spelled > 0, "float32")
        vectors = self.embedding(spelled)  # (N·T, C, D)
        vectors = _masked(F, vectors, F.expand_dims(is_character, 2))
        features = F.relu(self.convolution(F.transpose(vectors, (0, 2, 1))))  # (N·T, F, C)
        features = _masked(F, features, F.expand_dims(is_character, 1))
        peaks = self.first_max(features)  # (N·T, F)
        return F.reshape_like(
            peaks, characters, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2
        )  # (N, T, F)


def _masked(F, values, mask):
    """Set padding to zero; the backward pass of broadcast_mul would cost a third of this block."""
    return F.elemwise_mul(values, F.stop_gradient(F.broadcast_like(mask, values)))
