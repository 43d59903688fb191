"""The masked-LM head of a BERT: it scores pieces that the model cannot see, or intents as words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict

from gluonnlp.model import GELU
from mxnet import gluon
from mxnet.gluon import nn

if TYPE_CHECKING:
    from edp_mx.models.bert import BERTConfig
PIECE_BIAS = "cls.predictions.bias"  # the name of the pieces' biases in a checkpoint


class MaskedTransform(gluon.HybridBlock):
    """The masked-LM head before it compares pieces: dense layer, activation, norm.

    Source: Devlin et al. 2019, published code.
    """

    def __init__(self, config: BERTConfig, **block: str) -> None:
        super().__init__(**block)
        size = config.hidden_size
        with self.name_scope():
            self.transform = nn.Dense(size, in_units=size, flatten=False, prefix="transform_")
            self.activation = GELU() if config.activation == "gelu" else nn.Activation("relu")
            self.norm = nn.LayerNorm(
                epsilon=config.layer_norm_epsilon, in_channels=size, prefix="norm_"
            )

    def transformed(self, states):
        """Shapes: (K, H) → (K, H)."""
        return self.norm(self.activation(self.transform(states)))

    def tensors(self) -> Dict[str, gluon.Parameter]:
        """Return the parameters by the names that Hugging Face's BertForMaskedLM has for them."""
        return {
            "cls.predictions.transform.dense.weight": self.transform.weight,
            "cls.predictions.transform.dense.bias": self.transform.bias,
            "cls.predictions.transform.LayerNorm.weight": self.norm.gamma,
            "cls.predictions.transform.LayerNorm.bias": self.norm.beta,
        }


class MaskState(MaskedTransform):
    """The transformed state at [MASK], which takes the place of the pooled [CLS].

    Args:
        place: of [MASK], counted from the end if it is negative.

    Shapes: states (N, P, H), piece_lengths (N,) → (N, H).
    Source: Li et al. 2022, section 3.2.
    """

    def __init__(self, config: BERTConfig, *, place: int, **block: str) -> None:
        super().__init__(config, **block)
        self.place = place

    def hybrid_forward(self, F, states, piece_lengths):
        start = F.zeros_like(piece_lengths) if self.place >= 0 else piece_lengths  # (N,)
        rows = F.contrib.arange_like(piece_lengths, axis=0)  # (N,)
        places = F.stack(rows, start + self.place, axis=0)  # (2, N)
        return self.transformed(F.gather_nd(states, places))


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
