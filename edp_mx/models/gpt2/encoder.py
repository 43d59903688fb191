"""The family `gpt2`: a GPT-2 as an encoder, and as a model of the next piece."""

from __future__ import annotations

from functools import partial
from typing import Dict, Optional, Sequence, Tuple, Union

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.data.byte_level_bpe import ByteLevelBPE
from edp_mx.data.config import DataConfig
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.bert_states import at_tokens
from edp_mx.models.encoder import Encoder, Family, FrozenPart, refuse_too_long
from edp_mx.models.gpt2.checkpoint import (
    SIZES,
    checkpoint_of,
    load_gpt2,
    read_checkpoint,
    read_config,
    write_checkpoint,
)
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.gpt2.decoder import GPT2, initial_gpt2_values
from edp_mx.models.gpt2.steps import Past, step
from edp_mx.models.gpt2.upper import UpperGPT2, frozen_part
from edp_mx.models.next_piece_loss import OPERATOR
from edp_mx.models.trained_part import Adaptable


class _UponGPT2(Encoder):
    """What both encoders below have of their decoder."""

    def __init__(self, decoder: Union[GPT2, UpperGPT2]) -> None:
        super().__init__(prefix="")
        self.output_size = decoder.config.hidden_size
        self.initial_values = partial(initial_gpt2_values, num_layers=decoder.config.num_layers)
        self.decoder = decoder

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
        assert vocabulary.tokenizer is not None
        return {self.decoder.piece_embedding.name: vocabulary.tokenizer.pieces}


class GPT2Encoder(_UponGPT2):
    """Token states (those of last pieces) and an utterance vector (that of the last end-of-text).

    A piece sees only what stands before it, so that the last piece of a token is the first that has
    seen the whole token.

    Args:
        decoder: the network, or the part of it above its frozen layers.

    Shapes: pieces (N, P), or states below (N, P, H), last pieces (N, T), ends (N, 1) → states
        (N, T, H), pooled (N, H).
    """

    def __init__(self, decoder: Union[GPT2, UpperGPT2]) -> None:
        super().__init__(decoder)
        self.dropout = decoder.dropout

    def adaptable(self, frozen_layers: int) -> Adaptable:
        layers = list(self.decoder.layers)[frozen_layers:]
        dense = [each for layer in layers for each in (layer.proj, layer.ffn_1, layer.ffn_2)]
        return Adaptable([layer.attention for layer in layers], dense)

    def next_piece_scorer(self) -> NextPieceScorer:
        return NextPieceScorer(self.decoder, self.decoder.word_embed)

    def frozen_part(self) -> Optional[FrozenPart]:
        """See `Encoder`: embeddings and lowest layers, if they are frozen."""
        return frozen_part(self.decoder, GPT2Encoder)

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        read = self.decoder.inputs(batch, context)
        _, lengths, firsts = batch.pieces
        ends = lengths[:, None] - 1  # (N, 1)
        beyond = np.concatenate([firsts[:, 1:], np.zeros_like(ends)], axis=1)  # (N, T)
        lasts = np.where(beyond > 0, beyond, ends) - 1  # (N, T)
        return (
            read,
            mx.nd.array(lasts, ctx=context, dtype="float32"),
            mx.nd.array(ends, ctx=context, dtype="float32"),
        )

    def hybrid_forward(self, F, read, lasts, ends):
        states = self.decoder(read)  # (N, P, H)
        pooled = F.reshape(at_tokens(F, states, ends), (-1, self.output_size))  # (N, H)
        return self.dropout(at_tokens(F, states, lasts)), self.dropout(pooled)


class NextPieceScorer(_UponGPT2):
    """The losses of the pieces behind others; the output layer is the pieces' vectors.

    Args:
        decoder: the network, or the part of it above its frozen layers.
        word_embed: the embedding of the pieces.

    Shapes: pieces (N, P), or states below (N, P, H), places of the pieces before (N, R), and the
        true pieces (N, R), −1 for none → −ln p(true piece), 0 for none, and the likeliest pieces,
        (N, R) each.
    Source: Radford et al. 2018, equation 2.
    """

    def __init__(self, decoder: Union[GPT2, UpperGPT2], word_embed: nn.Embedding) -> None:
        super().__init__(decoder)
        self.word_embed, self.piece_vectors = word_embed, word_embed.weight

    def inputs(self, batch: Batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        """Return what the network reads, checked; places and true pieces are the caller's."""
        return (self.decoder.inputs(batch, context),)

    def frozen_part(self) -> Optional[FrozenPart]:
        """See `Encoder`: embeddings and lowest layers, if they are frozen."""
        return frozen_part(self.decoder, partial(NextPieceScorer, word_embed=self.word_embed))

    @property
    def max_positions(self) -> int:
        """How many pieces a sequence may have."""
        return self.decoder.config.max_positions

    def step(self, pieces: mx.nd.NDArray, past: Optional[Past]) -> Tuple[mx.nd.NDArray, Past]:
        """Return the scores behind some more pieces; see `steps.step`."""
        return step(self.decoder, pieces, past)

    def hybrid_forward(self, F, read, places, targets, piece_vectors):
        states = at_tokens(F, self.decoder(read), places)  # (N, R, H)
        losses, likeliest, *_ = F.Custom(states, piece_vectors, targets, op_type=OPERATOR)
        return losses, likeliest


def build_encoder(config: GPT2Config, data: DataConfig, vocabulary: Vocabulary) -> GPT2Encoder:
    """Build a GPT-2 without values."""
    assert vocabulary.tokenizer is not None  # the family has pieces
    refuse_too_long(data, config)
    return GPT2Encoder(GPT2(config, num_pieces=len(vocabulary.tokenizer), prefix="gpt2_"))


FAMILY = Family(
    name="gpt2",
    title="GPT-2",
    config=GPT2Config,
    has_pieces=True,
    build=build_encoder,
    learn_tokenizer=ByteLevelBPE.learn,
    read_settings=lambda path: vars(read_config(path)),
    read_checkpoint=read_checkpoint,
    load_checkpoint=lambda encoder, checkpoint: load_gpt2(encoder.decoder, checkpoint),
    checkpoint_of=lambda encoder, tokenizer: checkpoint_of(encoder.decoder, tokenizer),
    write_checkpoint=write_checkpoint,
    sizes=SIZES,
)
