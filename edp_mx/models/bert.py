"""BERT: its settings, and GluonNLP's network with the shapes and first values that we need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import gluonnlp
import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.models import lora, prefix, rgp
from edp_mx.models.encoder import TRAINED, ModelConfig
from edp_mx.runtime.files import path_field
from edp_mx.runtime.settings import SettingError, setting

ACTIVATIONS = ("gelu", "relu")
NUM_TOKEN_TYPES = 2  # sentence A and B; an utterance is an A
_INITIAL_STDDEV = 0.02


@dataclass(frozen=True)
class BERTConfig(ModelConfig):
    """Sizes of a BERT; the defaults are the paper's, which are also TinyBERT's.

    Attributes:
        family: bert.
        trained: also lora (low-rank adapters of all layers above `frozen_layers` and of the
            pooler, and the heads), rgp (the weights of those layers from gradients of low rank, and
            the heads) and prefix (keys and values in all layers above `frozen_layers` that come
            before those of an utterance, and the heads).
        lora_rank: rank of an adapter.
        lora_alpha: an adapter's change is scaled by lora_alpha / lora_rank; by default by 1.
        rgp_rank: rank of the carriers of a gradient.
        rgp_from: what the carriers span at each step: the largest part of update (how far the
            weights have moved; at the first step, the weights) or of weight (the weights).
        prefix_length: number of keys and values of a prefix.
        num_layers, num_heads, hidden_size, intermediate_size: sizes of the transformer.
        max_positions: length of the longest sequence of pieces, with [CLS] and [SEP].
        activation: of the feed-forward layers, gelu (erf) or relu.
        layer_norm_epsilon: added to the variance.
        dropout: on embeddings, attention and layer outputs, and before the heads.
        checkpoint: a folder in Hugging Face's layout to start from, such as pre-training writes;
            by default weights are drawn at random.
        is_embedding_trainable: False freezes the embeddings.
        frozen_layers: how many of the lowest layers are frozen.
        features: what the intent head reads: last (the pooled [CLS]) or all_layers (also the means
            of the pieces' vectors and of all layers but the last; only with trained: heads).

    Source: paper, section "Models"; Devlin et al. 2019; Jiao et al. 2020 for the sizes.
    """

    family: str = setting("bert", one_of=["bert"])
    trained: str = setting("all", one_of=(*TRAINED, "lora", "prefix", "rgp"))
    num_layers: int = setting(4, at_least=1)
    num_heads: int = setting(12, at_least=1)
    hidden_size: int = setting(312, at_least=1)
    intermediate_size: int = setting(1200, at_least=1)
    max_positions: int = setting(512, at_least=3)
    activation: str = setting("gelu", one_of=ACTIVATIONS)
    layer_norm_epsilon: float = setting(1e-12, above=0)
    dropout: float = setting(0.1, at_least=0, below=1)
    checkpoint: Optional[str] = path_field()
    is_embedding_trainable: bool = True
    frozen_layers: int = setting(0, at_least=0)
    features: str = setting("last", one_of=("last", "all_layers"))
    lora_rank: int = setting(8, at_least=1)
    lora_alpha: Optional[float] = setting(None, above=0)
    prefix_length: int = setting(10, at_least=1)
    rgp_rank: int = setting(1, at_least=1)
    rgp_from: str = setting("update", one_of=rgp.SOURCES)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features == "all_layers" and self.trained != "heads":
            raise SettingError("features", "must be last unless trained is heads")
        if self.checkpoint is not None and self.start_from is not None:
            raise SettingError("start_from", "excludes checkpoint; leave one out")
        if self.hidden_size % self.num_heads:
            raise SettingError(
                "hidden_size",
                f"must be a multiple of the {self.num_heads} heads, not {self.hidden_size}",
            )
        if self.frozen_layers > self.num_layers:
            raise SettingError(
                "frozen_layers",
                f"must be at most {self.num_layers} (num_layers), not {self.frozen_layers}",
            )
        if self.trained == "lora" and self.lora_rank > self.hidden_size:
            raise SettingError(
                "lora_rank",
                f"must be at most {self.hidden_size} (hidden_size), not {self.lora_rank}",
            )
        smallest = min(self.hidden_size, self.intermediate_size)
        if self.trained == "rgp" and self.rgp_rank > smallest:
            raise SettingError(
                "rgp_rank",
                f"must be at most {smallest} (hidden_size or intermediate_size), not "
                f"{self.rgp_rank}",
            )

    @property
    def lora_scale(self) -> float:
        """What an adapter's change is multiplied by."""
        return 1.0 if self.lora_alpha is None else self.lora_alpha / self.lora_rank


def initial_bert_values(
    name: str, shape: Tuple[int, ...], generator: np.random.Generator
) -> np.ndarray:
    """Draw BERT's first values: normal with σ = 0.02, truncated at 2 σ; layer norms at identity.

    Adapters are drawn by `lora.initial_adapter_values`.

    Source: Devlin et al. 2019, their published code (`initializer_range`).
    """
    if lora.is_adapter(name):
        return lora.initial_adapter_values(name, shape, generator)
    if name.endswith(("bias", "beta")):
        return np.zeros(shape)
    if name.endswith("gamma"):
        return np.ones(shape)
    values = generator.standard_normal(shape)
    while (far := np.abs(values) > 2).any():
        values[far] = generator.standard_normal(int(far.sum()))
    return _INITIAL_STDDEV * values


class BERT(gluon.HybridBlock):
    """GluonNLP's BERT, which returns the states of all pieces and the pooled [CLS].

    Shapes: pieces (N, P), piece_lengths (N,) → (N, P, H), (N, H).
    Source: Devlin et al. 2019; all token types are 0, since an utterance is one segment.
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
        self._reads_all = config.features == "all_layers"
        encoder._output_all_encodings = self._reads_all
        _settle_shapes(self.model, config)
        self._freeze(config)
        self.lora_scale = config.lora_scale
        if config.trained == "lora":
            lora.add_adapters(
                self.model,
                first=config.frozen_layers,
                rank=config.lora_rank,
                scale=config.lora_scale,
            )
        if config.trained == "rgp":
            first, rank = config.frozen_layers, config.rgp_rank
            lora.add_adapters(self.model, first=first, rank=rank, kind=rgp.Carriers)
        if config.trained == "prefix":
            first, length = config.frozen_layers, config.prefix_length
            prefix.add_prefixes(self.model, first=first, length=length)

    @property
    def piece_embedding(self) -> gluon.Parameter:
        """Vectors of the pieces, (V, H)."""
        return self.model.word_embed[0].weight

    def embedding_parameters(self) -> List[gluon.Parameter]:
        """Return the vectors of pieces, token types and positions, and the norm of their sum."""
        model = self.model
        return [
            self.piece_embedding,
            model.token_type_embed[0].weight,
            model.encoder.position_weight,
            *model.encoder.layer_norm.collect_params().values(),
        ]

    def lower_states(self, pieces, piece_lengths, *, num_layers: int):
        """Return the states above the lowest layers. Shapes: (N, P), (N,) → (N, P, H)."""
        model, F = self.model, mx.nd
        rows = model.word_embed(pieces) + model.token_type_embed(F.zeros_like(pieces))  # (N, P, H)
        positions = model.encoder.position_weight.data()[: pieces.shape[1]]  # (P, H)
        rows = model.encoder.layer_norm(F.broadcast_add(rows, F.expand_dims(positions, axis=0)))
        rows = F.swapaxes(rows, 0, 1)  # (P, N, H)
        visible = visible_lengths(F, rows, piece_lengths)  # (N, P)
        for i in range(num_layers):
            rows, _ = model.encoder.transformer_cells[i](rows, visible)
        return F.swapaxes(rows, 0, 1)

    def _freeze(self, config: BERTConfig) -> None:
        frozen = [] if config.is_embedding_trainable else self.embedding_parameters()
        for i in range(config.frozen_layers):
            frozen += self.model.encoder.transformer_cells[i].collect_params().values()
        for parameter in frozen:
            parameter.grad_req = "null"

    def hybrid_forward(self, F, pieces, piece_lengths):
        sequence, pooled = self.model(pieces, F.zeros_like(pieces), piece_lengths)
        if self._reads_all:
            return self._with_means(F, pieces, piece_lengths, *sequence, pooled)
        return sequence, pooled

    def _with_means(self, F, pieces, piece_lengths, *outputs):
        """Return the last layer, and pooled beside the means of what lies below that layer.

        Shapes: (N, P), (N,), layers (N, P, H), pooled (N, H) → (N, P, H), (N, (L + 1) H).
        """
        *layers, pooled = outputs
        vectors = self.model.word_embed(pieces)  # (N, P, H)
        vectors = F.broadcast_sub(vectors, F.mean(vectors, axis=2, keepdims=True))
        variance = F.mean(F.square(vectors), axis=2, keepdims=True)  # (N, P, 1)
        vectors = F.broadcast_div(vectors, F.sqrt(variance + 1e-6))
        lower = F.concat(vectors, *layers[:-1], dim=2)  # (N, P, L H)
        spoken = F.SequenceMask(lower, piece_lengths, use_sequence_length=True, axis=1)
        means = F.broadcast_div(F.sum(spoken, axis=1), F.reshape(piece_lengths, (-1, 1)))
        return layers[-1], F.concat(pooled, means, dim=1)


def visible_lengths(F, rows, piece_lengths):
    """Return how many pieces each piece sees. Shapes: (P, N, H), (N,) → (N, P) int32."""
    zeros = F.zeros_like(F.contrib.arange_like(rows, axis=0))  # (P,)
    visible = F.broadcast_add(F.reshape(piece_lengths, (-1, 1)), F.reshape(zeros, (1, -1)))
    return F.cast(visible, dtype="int32")


def _settle_shapes(model: gluonnlp.model.BERTModel, config: BERTConfig) -> None:
    """Set the shapes that GluonNLP would infer from a first batch: copying weights needs them."""
    hidden, intermediate = config.hidden_size, config.intermediate_size
    shapes: Dict[gluon.Parameter, Tuple[int, ...]] = {model.pooler.weight: (hidden, hidden)}
    for cell in model.encoder.transformer_cells:
        shapes[cell.proj.weight] = (hidden, hidden)
        shapes[cell.ffn.ffn_1.weight] = (intermediate, hidden)
        shapes[cell.ffn.ffn_2.weight] = (hidden, intermediate)
    for parameter, shape in shapes.items():
        parameter.shape = shape
