"""BERT: its settings, and GluonNLP's network with the shapes and first values that we need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

import gluonnlp
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.template import is_template
from edp_mx.models.bert_states import normalised, piece_means, settle_shapes
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.infilling import MaskState
from edp_mx.models.trained_parts import TransformerSettings, freeze_lowest, settled_values
from edp_mx.runtime.files import path_field
from edp_mx.runtime.limits import MOST_LAYERS, MOST_WIDE
from edp_mx.runtime.settings import SettingError, setting

ACTIVATIONS = ("gelu", "relu")
NUM_TOKEN_TYPES = 2  # sentence A and B; an utterance is an A
_INITIAL_STDDEV = 0.02


@dataclass(frozen=True)
class BERTConfig(TransformerSettings, ModelConfig):
    """Sizes of a BERT; the defaults are the paper's, which are also TinyBERT's.

    Attributes:
        family: bert.
        intents: pooled ([CLS]), or infilling: the state at the [MASK] of `template`, through the
            checkpoint's masked-LM head, whose scores of label words the intents start from.
        template: what each utterance, {}, is then written in, between [CLS] and [SEP].
        label_words: a public YAML file of intents and their words; by default, and for intents
            that it leaves out, the words are those of the names.
        num_layers, hidden_size, intermediate_size: sizes of the transformer.
        max_positions: length of the longest sequence of pieces, with [CLS] and [SEP].
        activation: of the feed-forward layers, gelu (erf) or relu.
        layer_norm_epsilon: added to the variance in each layer norm.
        checkpoint: a folder in Hugging Face's layout to start from, such as pre-training writes,
            which also brings the sizes; by default weights are drawn at random.
        features: the utterance's vector: last (the pooled [CLS]), mean (of the pieces in the last
            layer) or, only with trained: heads, all_layers (the pooled [CLS], and the means of the
            pieces' vectors and of all layers but the last) or all_means (the same, with the mean
            of the last layer in place of the pooled [CLS]).
        token_layer: the layer whose states stand for the tokens, counted from 1, the last by
            default; another only with trained: heads.

    Source: paper, section "Models"; Devlin et al. 2019; Jiao et al. 2020 for the sizes.
    """

    family: str = setting("bert", one_of=["bert"])
    num_layers: int = setting(4, at_least=1, at_most=MOST_LAYERS)
    hidden_size: int = setting(312, at_least=1, at_most=MOST_WIDE)
    intermediate_size: int = setting(1200, at_least=1, at_most=MOST_WIDE)
    max_positions: int = setting(512, at_least=3, at_most=MOST_WIDE)
    activation: str = setting("gelu", one_of=ACTIVATIONS)
    layer_norm_epsilon: float = setting(1e-12, above=0, at_most=1)
    features: str = setting("last", one_of=("last", "mean", "all_layers", "all_means"))
    token_layer: Optional[int] = setting(None, at_least=1, at_most=MOST_LAYERS)
    intents: str = setting("pooled", one_of=("pooled", "infilling"))
    template: str = "{} . it is about [MASK] ."
    label_words: Optional[str] = path_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trained != "heads":
            if self.reads_all_layers:
                raise SettingError(
                    "features", f"must not be {self.features} unless trained is heads"
                )
            if self.token_layer is not None:
                raise SettingError("token_layer", "must be left out unless trained is heads")
        if self.reads_mean and self.intents == "infilling":
            raise SettingError(
                "features", f"must not be {self.features} where intents is infilling"
            )
        if (self.token_layer or 1) > self.num_layers:
            raise SettingError(
                "token_layer",
                f"must be at most {self.num_layers} (num_layers), not {self.token_layer}",
            )
        if not is_template(self.template):
            raise SettingError(
                "template", f"must have {{}} and [MASK] once, between blanks, not {self.template!r}"
            )
        if self.label_words is not None and self.intents != "infilling":
            raise SettingError("label_words", "must be left out unless intents is infilling")

    @property
    def reads_mean(self) -> bool:
        """Whether the last layer gives the mean of its pieces, not the pooled [CLS]."""
        return self.features in ("mean", "all_means")

    @property
    def reads_all_layers(self) -> bool:
        """Whether an utterance's vector has a part from each layer."""
        return self.features in ("all_layers", "all_means")

    @property
    def written_around(self) -> Optional[str]:
        return self.template if self.intents == "infilling" else None


def initial_bert_values(
    name: str, shape: Tuple[int, ...], generator: np.random.Generator
) -> np.ndarray:
    """Draw BERT's first values: normal with σ = 0.02, truncated at 2 σ; layer norms at identity.

    Parameters that a `TrainedPart` adds are drawn as it likes.

    Source: Devlin et al. 2019, their published code (`initializer_range`).
    """
    if (settled := settled_values(name, shape, generator)) is not None:
        return settled
    values = generator.standard_normal(shape)
    while (far := np.abs(values) > 2).any():
        values[far] = generator.standard_normal(int(far.sum()))
    return _INITIAL_STDDEV * values


class BERT(gluon.HybridBlock):
    """GluonNLP's BERT, which returns the states of all pieces and the pooled [CLS].

    Args:
        num_pieces: V.
        mask_place: of the [MASK] that is read in place of [CLS]; see `MaskState`.

    Shapes: pieces (N, P), piece_lengths (N,) → (N, P, H), (N, H).
    Source: Devlin et al. 2019; all token types are 0, since an utterance is one segment.
    """

    def __init__(
        self, config: BERTConfig, *, num_pieces: int, mask_place: Optional[int] = None, **block: str
    ) -> None:
        super().__init__(**block)
        self.mask_state: Optional[MaskState] = None
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
                use_pooler=mask_place is None and not config.reads_mean,
                use_decoder=False,
                use_classifier=False,
                prefix="",
            )
            if mask_place is not None:
                self.mask_state = MaskState(config, place=mask_place, prefix="mask_")
        self._has_all_states = config.reads_all_layers or config.token_layer is not None
        encoder._output_all_encodings = self._has_all_states
        settle_shapes(self.model, config)
        self.config = config
        freeze_lowest(config, self.embedding_parameters(), encoder.transformer_cells)

    @property
    def has_pooler(self) -> bool:
        """Whether an utterance's vector is the pooled [CLS]."""
        return hasattr(self.model, "pooler")

    @property
    def pooler(self) -> Optional[nn.Dense]:
        """The dense layer that makes an utterance's vector; None for a mean."""
        if self.mask_state is not None:
            return self.mask_state.transform
        return self.model.pooler if self.has_pooler else None

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

    def hybrid_forward(self, F, pieces, piece_lengths):
        sequence = self.model(pieces, F.zeros_like(pieces), piece_lengths)
        if self.has_pooler:
            sequence, pooled = sequence
        layers = sequence if self._has_all_states else [sequence]
        if self.config.reads_mean:
            pooled = piece_means(F, layers[-1:], piece_lengths)
        elif self.mask_state is not None:
            pooled = self.mask_state(layers[-1], piece_lengths)
        if self.config.reads_all_layers:
            below = [normalised(F, self.model.word_embed(pieces)), *layers[:-1]]
            pooled = F.concat(pooled, piece_means(F, below, piece_lengths), dim=1)
        return layers[(self.config.token_layer or 0) - 1], pooled
