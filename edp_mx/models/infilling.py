"""Intents as words that fill a template's [MASK], scored through the masked-LM head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Sequence

import mxnet as mx
import numpy as np
from gluonnlp.model import GELU
from mxnet import gluon
from mxnet.gluon import nn

if TYPE_CHECKING:
    from edp_mx.models.bert import BERTConfig
    from edp_mx.models.bert_encoder import BERTEncoder


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
        config: of the BERT.
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


def start_from_words(
    encoder: BERTEncoder,
    head: nn.Dense,
    pieces: Sequence[Sequence[int]],
    *,
    intents: Iterable[int],
    bias: Optional[np.ndarray] = None,
) -> None:
    """Let rows of the intent head score the label words as the masked-LM head does.

    An intent's score is then the mean of the scores of its pieces. Features beside the state at
    [MASK] get weights of 0.

    Args:
        encoder: a BERT that reads [MASK].
        head: of the intents.
        pieces: ids of each intent's label words.
        intents: which rows to set.
        bias: of each piece, (V,); without, the rows keep their biases.

    Departs: the rows are trained as weights of their own, not as the pieces' vectors.
    """
    vectors = encoder.bert.piece_embedding.data().asnumpy()  # (V, H)
    weights, biases = head.weight.data().asnumpy(), head.bias.data().asnumpy()  # (I, G H), (I,)
    for i in intents:
        chosen: List[int] = list(pieces[i])
        weights[i] = 0
        weights[i, : vectors.shape[1]] = vectors[chosen].mean(axis=0)
        if bias is not None:
            biases[i] = bias[chosen].mean()
    head.weight.set_data(mx.nd.array(weights))
    head.bias.set_data(mx.nd.array(biases))
