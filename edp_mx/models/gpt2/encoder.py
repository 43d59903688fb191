"""The family `gpt2`: a GPT-2 as an encoder, and as a model of the next piece."""

from __future__ import annotations

from functools import partial
from typing import Dict, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.byte_level_bpe import ByteLevelBPE
from edp_mx.data.config import DataConfig
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.bert_states import at_tokens
from edp_mx.models.encoder import Encoder, Family
from edp_mx.models.gpt2.checkpoint import (
    SIZES,
    checkpoint_of,
    load_gpt2,
    read_config,
    read_start,
    write_checkpoint,
)
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.gpt2.decoder import GPT2, initial_gpt2_values
from edp_mx.models.gpt2.steps import Past, step
from edp_mx.models.id_ranges import check_ids, check_lengths
from edp_mx.models.trained_part import Adaptable


class GPT2Encoder(Encoder):
    """Token states (those of last pieces) and an utterance vector (that of the last end-of-text).

    A piece sees only what stands before it, so that the last piece of a token is the first that has
    seen the whole token.

    Shapes: pieces (N, P), last pieces (N, T), ends (N, 1) → states (N, T, H), pooled (N, H).
    """

    def __init__(self, config: GPT2Config, *, num_pieces: int, **block: str) -> None:
        super().__init__(**block)
        self.output_size = config.hidden_size
        self.initial_values = partial(initial_gpt2_values, num_layers=config.num_layers)
        with self.name_scope():
            self.decoder = GPT2(config, num_pieces=num_pieces, prefix="")
            self.dropout = nn.Dropout(config.dropout)

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
        """See `Encoder`."""
        return _tables(self.decoder, vocabulary)

    def adaptable(self, frozen_layers: int) -> Adaptable:
        """See `Encoder`."""
        layers = list(self.decoder.layers)[frozen_layers:]
        dense = [each for layer in layers for each in (layer.proj, layer.ffn_1, layer.ffn_2)]
        return Adaptable([layer.attention for layer in layers], dense)

    def next_piece_scorer(self) -> NextPieceScorer:
        """See `Encoder`."""
        return NextPieceScorer(self)

    def inputs(self, batch: Batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        """See `Encoder`."""
        (pieces,) = _read(self.decoder, batch, context)
        assert isinstance(batch.inputs, PieceInputs)
        _, lengths, firsts = batch.inputs
        ends = lengths[:, None] - 1  # (N, 1)
        beyond = np.concatenate([firsts[:, 1:], np.zeros_like(ends)], axis=1)  # (N, T)
        lasts = np.where(beyond > 0, beyond, ends) - 1  # (N, T)
        return (
            pieces,
            mx.nd.array(lasts, ctx=context, dtype="float32"),
            mx.nd.array(ends, ctx=context, dtype="float32"),
        )

    def hybrid_forward(self, F, pieces, lasts, ends):
        states = self.decoder(pieces)  # (N, P, H)
        pooled = F.reshape(at_tokens(F, states, ends), (-1, self.output_size))  # (N, H)
        return self.dropout(at_tokens(F, states, lasts)), self.dropout(pooled)


class NextPieceScorer(Encoder):
    """Scores of all pieces for the place behind others; the output layer is the pieces' vectors.

    Args:
        encoder: the encoder whose network it shares.

    Shapes: pieces (N, P), places of the pieces before (N, R) → (N, R, V).
    Source: Radford et al. 2018, equation 2.
    """

    def __init__(self, encoder: GPT2Encoder) -> None:
        super().__init__(prefix="")
        self.output_size, self.initial_values = encoder.output_size, encoder.initial_values
        self.decoder = encoder.decoder
        self.piece_vectors = encoder.decoder.piece_embedding

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
        """See `Encoder`."""
        return _tables(self.decoder, vocabulary)

    def inputs(self, batch: Batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        """Return the pieces, checked; the places are the caller's."""
        return _read(self.decoder, batch, context)

    @property
    def max_positions(self) -> int:
        """How many pieces a sequence may have."""
        return self.decoder.config.max_positions

    def step(self, pieces: mx.nd.NDArray, past: Optional[Past]) -> Tuple[mx.nd.NDArray, Past]:
        """Return the scores behind some more pieces; see `steps.step`."""
        return step(self.decoder, pieces, past)

    def hybrid_forward(self, F, pieces, places, piece_vectors):
        states = at_tokens(F, self.decoder(pieces), places)  # (N, R, H)
        return F.FullyConnected(
            states, piece_vectors, no_bias=True, num_hidden=self.decoder.num_pieces, flatten=False
        )


def build_encoder(config: GPT2Config, data: DataConfig, vocabulary: Vocabulary) -> GPT2Encoder:
    """Build a GPT-2 without values."""
    assert vocabulary.tokenizer is not None  # the family has pieces
    if data.max_pieces > config.max_positions:
        raise UserError(
            f"data.max_pieces is {data.max_pieces}, but the model has only "
            f"{config.max_positions} positions (model.max_positions); lower it"
        )
    return GPT2Encoder(config, num_pieces=len(vocabulary.tokenizer), prefix="gpt2_")


def _tables(decoder: GPT2, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:
    assert vocabulary.tokenizer is not None
    return {decoder.piece_embedding.name: vocabulary.tokenizer.pieces}


def _read(decoder: GPT2, batch: Batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
    """Return the pieces (N, P) of a batch, checked."""
    assert isinstance(batch.inputs, PieceInputs)
    pieces, lengths, _ = batch.inputs
    check_lengths(lengths, pieces.shape[1])
    check_ids("pieces", pieces, decoder.num_pieces)
    if pieces.shape[1] > decoder.config.max_positions:
        raise UserError(
            f"an utterance has {pieces.shape[1]} pieces, but model.max_positions is "
            f"{decoder.config.max_positions}; lower data.max_pieces"
        )
    return (mx.nd.array(pieces, ctx=context, dtype="int32"),)


FAMILY = Family(
    name="gpt2",
    config=GPT2Config,
    has_pieces=True,
    build=build_encoder,
    learn_tokenizer=ByteLevelBPE.learn,
    read_settings=lambda path: vars(read_config(path)),
    read_checkpoint=read_start,
    load_checkpoint=lambda encoder, checkpoint: load_gpt2(encoder.decoder, checkpoint),
    checkpoint_of=lambda encoder, tokenizer: checkpoint_of(encoder.decoder, tokenizer),
    write_checkpoint=write_checkpoint,
    sizes=SIZES,
)
