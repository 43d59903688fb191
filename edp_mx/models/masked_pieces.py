"""The masked-LM head of a BERT, which scores the pieces at places that the model cannot see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict

from mxnet import gluon

from edp_mx.models.checkpoints.layouts import PIECE_BIAS
from edp_mx.models.infilling import MaskedTransform

if TYPE_CHECKING:
    from edp_mx.models.bert import BERTConfig


class MaskedPieceHead(MaskedTransform):
    """Scores of all pieces at the masked places: transformed states, tied decoder.

    Shapes: states (N, P, H), places (2, K), piece vectors (V, H) → (K, V).
    Source: Devlin et al. 2019, published code; the decoder's weights are those of the embedding.
    """

    def __init__(self, config: BERTConfig, *, num_pieces: int, **block: str) -> None:
        super().__init__(config, **block)
        self._num_pieces = num_pieces
        with self.name_scope():
            self.bias = self.params.get("bias", shape=(num_pieces,))

    def tensors(self) -> Dict[str, gluon.Parameter]:
        """See `MaskedTransform`; the decoder's bias too."""
        return {**super().tensors(), PIECE_BIAS: self.bias}

    def hybrid_forward(self, F, states, places, piece_vectors, bias):
        states = self.transformed(F.gather_nd(states, places))  # (K, H)
        return F.FullyConnected(states, piece_vectors, bias, num_hidden=self._num_pieces)  # (K, V)
