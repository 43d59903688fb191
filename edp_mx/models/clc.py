"""The family `clc`: word vectors and a character CNN, then a bi-LSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.data.config import DataConfig
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.clc_layers import POOLINGS, BiLSTM, CharCNN, Pooling
from edp_mx.models.encoder import Encoder, Family, ModelConfig
from edp_mx.models.id_ranges import check_ids, check_lengths
from edp_mx.models.onnx.clc import clc_graph
from edp_mx.runtime.limits import MOST_LAYERS, MOST_WIDE
from edp_mx.runtime.settings import SettingError, setting


@dataclass(frozen=True)
class CLCConfig(ModelConfig):
    """Sizes of a CLC model; the defaults are the paper's where it gives them.

    Attributes:
        family: clc.
        character_dimension, character_filters, character_width: sizes of the character CNN.
        hidden_size: size of the state of one direction of the bi-LSTM.
        num_layers: layers of the bi-LSTM.
        dropout: on the bi-LSTM's input, between its layers and on its output (0.5: Ma & Hovy).
        intent_pooling: how token states become one vector (mean, max, first, last). The paper
            does not say; max, because a few words carry the intent, wherever they stand.

    Source: paper, section "Models" (2 layers, 384); the rest Ma & Hovy 2016, table 1.
    """

    family: str = setting("clc", one_of=["clc"])
    character_dimension: int = setting(30, at_least=1, at_most=MOST_WIDE)
    character_filters: int = setting(30, at_least=1, at_most=MOST_WIDE)
    character_width: int = setting(3, at_least=1, at_most=MOST_WIDE)
    hidden_size: int = setting(384, at_least=1, at_most=MOST_WIDE)
    num_layers: int = setting(2, at_least=1, at_most=MOST_LAYERS)
    dropout: float = setting(0.5, at_least=0, below=1)
    intent_pooling: str = setting("max", one_of=POOLINGS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.character_width % 2 == 0:
            raise SettingError("character_width", f"must be odd, not {self.character_width}")


class CLCEncoder(Encoder):
    """Token states and an utterance vector from words and their characters.

    Shapes: words (N, T), characters (N, T, C), lengths (N,) → states (N, T, 2·hidden_size),
    pooled (N, 2·hidden_size); among words and characters 0 is padding and 1 unknown.
    Source: paper, section "Models"; Ma & Hovy 2016, figure 3.
    """

    def __init__(
        self,
        config: CLCConfig,
        *,
        num_words: int,
        num_characters: int,
        word_dimension: int,
        is_embedding_trainable: bool = True,
        **block: str,
    ) -> None:
        super().__init__(**block)
        self._num_words, self._num_characters = num_words, num_characters
        self.output_size = 2 * config.hidden_size
        with self.name_scope():
            self.words = nn.Embedding(num_words, word_dimension, prefix="words_")
            self.characters = CharCNN(
                num_characters,
                dimension=config.character_dimension,
                filters=config.character_filters,
                width=config.character_width,
                prefix="characters_",
            )
            self.dropout = nn.Dropout(config.dropout)
            self.lstm = BiLSTM(
                word_dimension + config.character_filters,
                hidden_size=config.hidden_size,
                num_layers=config.num_layers,
                dropout=config.dropout,
                prefix="lstm_",
            )
            self.pooling = Pooling(config.intent_pooling)
        if not is_embedding_trainable:
            self.words.weight.grad_req = "null"

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
        (characters,) = (
            n for n in self.characters.collect_params() if n.endswith("embedding_weight")
        )
        return {self.words.weight.name: vocabulary.words, characters: vocabulary.characters}

    def set_word_vectors(self, vectors: np.ndarray) -> None:
        if vectors.shape != tuple(self.words.weight.shape):
            raise UserError(
                f"word vectors of shape {vectors.shape} do not fit {self._num_words} words of "
                f"dimension {self.words.weight.shape[1]}"
            )
        self.words.weight.set_data(mx.nd.array(vectors, dtype="float32"))

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        words, characters, lengths = map(np.asarray, (*batch.inputs, batch.lengths))
        check_lengths(lengths, words.shape[1])
        check_ids("words", words, self._num_words)
        check_ids("characters", characters, self._num_characters)
        return (
            mx.nd.array(words, ctx=context, dtype="int32"),
            mx.nd.array(characters, ctx=context, dtype="int32"),
            mx.nd.array(lengths, ctx=context, dtype="float32"),
        )

    def hybrid_forward(self, F, words, characters, lengths):
        known = self.words(F.transpose(words))  # (T, N, E)
        spelled = F.swapaxes(self.characters(characters), 0, 1)  # (T, N, F)
        tokens = self.dropout(F.concat(known, spelled, dim=2))  # (T, N, E+F)
        states = self.dropout(self.lstm(tokens, lengths))  # (T, N, 2H)
        states = F.swapaxes(states, 0, 1)  # (N, T, 2H)
        return states, self.pooling(states, lengths)


def build_encoder(config: CLCConfig, data: DataConfig, vocabulary: Vocabulary) -> CLCEncoder:
    return CLCEncoder(
        config,
        num_words=len(vocabulary.words),
        num_characters=len(vocabulary.characters),
        word_dimension=data.embeddings.dimension,
        is_embedding_trainable=data.embeddings.is_trainable,
        prefix="clc_",
    )


_SIZES = ("character_dimension", "character_filters", "character_width", "hidden_size",
          "num_layers")  # fmt: skip
FAMILY = Family(
    "clc", CLCConfig, has_pieces=False, build=build_encoder, sizes=_SIZES, graph=clc_graph
)
