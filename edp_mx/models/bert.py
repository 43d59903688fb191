"""BERT: its settings, and GluonNLP's network with the shapes and first values that we need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import gluonnlp
import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.models.encoder import ModelConfig
from edp_mx.runtime.files import path_field

ACTIVATIONS = ("gelu", "relu")
NUM_TOKEN_TYPES = 2  # sentence A and B; an utterance is an A
_INITIAL_STDDEV = 0.02


@dataclass(frozen=True)
class BERTConfig(ModelConfig):
    """Sizes of a BERT; the defaults are the paper's, which are also TinyBERT's (4 layers, 312).

    Attributes:
        family: which model this is.
        num_layers, num_heads, hidden_size, intermediate_size: of the transformer.
        max_positions: longest sequence of pieces, with [CLS] and [SEP].
        activation: of the feed-forward layers, gelu (erf) or relu.
        layer_norm_epsilon: added to the variance.
        dropout: on embeddings, attention, layer outputs, and before the heads.
        checkpoint: a folder with config.json, vocab.txt and model.safetensors to start from
            (Hugging Face's layout, which our pre-training writes too); left out, weights are drawn.
        is_embedding_trainable: False freezes the embeddings.
        frozen_layers: so many layers, from the lowest, are frozen.

    Raises:
        UserError: a value is impossible.

    Source: paper, section "Models"; Devlin et al. 2019; Jiao et al. 2020 for the sizes.
    """

    family: str = "bert"
    num_layers: int = 4
    num_heads: int = 12
    hidden_size: int = 312
    intermediate_size: int = 1200
    max_positions: int = 512
    activation: str = "gelu"
    layer_norm_epsilon: float = 1e-12
    dropout: float = 0.1
    checkpoint: Optional[str] = path_field()
    is_embedding_trainable: bool = True
    frozen_layers: int = 0

    def __post_init__(self) -> None:
        if self.family != "bert":
            raise UserError(f"family: {self.family!r} is not 'bert'")
        for name in ("num_layers", "num_heads", "hidden_size", "intermediate_size"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}: must be at least 1, not {getattr(self, name)}")
        if self.hidden_size % self.num_heads:
            raise UserError(
                f"hidden_size: {self.hidden_size} is not a multiple of the {self.num_heads} heads"
            )
        if self.max_positions < 3:
            raise UserError(f"max_positions: must be at least 3, not {self.max_positions}")
        if self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise UserError(f"activation: {self.activation!r} is none of {known}")
        if not self.layer_norm_epsilon > 0:
            raise UserError(f"layer_norm_epsilon: must be above 0, not {self.layer_norm_epsilon}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout: must be at least 0 and below 1, not {self.dropout}")
        if not 0 <= self.frozen_layers <= self.num_layers:
            raise UserError(
                f"frozen_layers: must be 0 to {self.num_layers} (num_layers), "
                f"not {self.frozen_layers}"
            )


def initial_bert_values(
    name: str, shape: Tuple[int, ...], generator: np.random.Generator
) -> np.ndarray:
    """First values of BERT's parameters: normal with σ = 0.02, cut at 2 σ; norms at identity.

    Source: Devlin et al. 2019, their published code (`initializer_range`).
    """
    if name.endswith(("bias", "beta")):
        return np.zeros(shape)
    if name.endswith("gamma"):
        return np.ones(shape)
    values = generator.standard_normal(shape)
    while (far := np.abs(values) > 2).any():
        values[far] = generator.standard_normal(int(far.sum()))
    return _INITIAL_STDDEV * values


class BERT(gluon.HybridBlock):
    """GluonNLP's BERT: all pieces' states and the pooled [CLS].

    Args:
        config: sizes.
        num_pieces: size of the vocabulary.

    Shapes: pieces (N, P), piece_lengths (N,) → (N, P, H), (N, H).
    Source: Devlin et al. 2019; token types are all 0, since an utterance is one segment.
    """

    def __init__(self, config: BERTConfig, *, num_pieces: int, **block: str) -> None:
        super().__init__(**block)
        with self.name_scope():
            encoder = gluonnlp.model.BERTEncoder(
                num_layers=config.num_layers,
                units=config.hidden_size,
                hidden_size=config.intermediate_size,
                max_length=config.max_positions,
                num_heads=config.num_heads,
                dropout=config.dropout,
                activation=config.activation,
                layer_norm_eps=config.layer_norm_epsilon,
                prefix="encoder_",
            )
            self.model = gluonnlp.model.BERTModel(
                encoder,
                vocab_size=num_pieces,
                token_type_vocab_size=NUM_TOKEN_TYPES,
                units=config.hidden_size,
                embed_size=config.hidden_size,
                use_decoder=False,
                use_classifier=False,
                prefix="",
            )
        _settle_shapes(self.model, config)
        self._freeze(config)

    @property
    def piece_embedding(self) -> gluon.Parameter:
        """The vectors of the pieces, (V, H)."""
        return self.model.word_embed[0].weight

    def embedding_parameters(self) -> List[gluon.Parameter]:
        """Pieces, token types and positions, and the layer norm over their sum."""
        model = self.model
        return [
            self.piece_embedding,
            model.token_type_embed[0].weight,
            model.encoder.position_weight,
            *model.encoder.layer_norm.collect_params().values(),
        ]

    def _freeze(self, config: BERTConfig) -> None:
        """Takes the gradient from what is not to be trained."""
        frozen = [] if config.is_embedding_trainable else self.embedding_parameters()
        for i in range(config.frozen_layers):
            frozen += self.model.encoder.transformer_cells[i].collect_params().values()
        for parameter in frozen:
            parameter.grad_req = "null"

    def hybrid_forward(self, F, pieces, piece_lengths):
        """See the class. Shapes: (N, P), (N,) → (N, P, H), (N, H)."""
        return self.model(pieces, F.zeros_like(pieces), piece_lengths)


def _settle_shapes(model: gluonnlp.model.BERTModel, config: BERTConfig) -> None:
    """Shapes that GluonNLP would only learn from a first batch; copying weights needs them now."""
    hidden, intermediate = config.hidden_size, config.intermediate_size
    shapes: Dict[gluon.Parameter, Tuple[int, ...]] = {model.pooler.weight: (hidden, hidden)}
    for cell in model.encoder.transformer_cells:
        shapes[cell.proj.weight] = (hidden, hidden)
        shapes[cell.ffn.ffn_1.weight] = (intermediate, hidden)
        shapes[cell.ffn.ffn_2.weight] = (hidden, intermediate)
    for parameter, shape in shapes.items():
        parameter.shape = shape
