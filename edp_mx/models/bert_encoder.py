"""The family `bert`: a BERT that is read at the first piece of each token."""

from __future__ import annotations

from typing import List, Optional, Tuple

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.config import DataConfig
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.bert import BERT, BERTConfig, initial_bert_values
from edp_mx.models.checkpoints.huggingface import (
    Checkpoint,
    load_bert,
    read_checkpoint,
    require_sizes,
)
from edp_mx.models.encoder import Encoder, Family
from edp_mx.models.id_ranges import check_ids, check_lengths


class BERTEncoder(Encoder):
    """Token states (those of first pieces) and an utterance vector (the pooled [CLS]).

    Shapes: pieces (N, P), piece_lengths (N,), first pieces (N, T) → states (N, T, H), pooled
    (N, H).
    Source: paper, section "Models"; Devlin et al. 2019, sections 4.1 and 5.3.
    """

    initial_values = staticmethod(initial_bert_values)

    def __init__(self, config: BERTConfig, *, num_pieces: int, **block: str) -> None:
        super().__init__(**block)
        self._num_pieces = num_pieces
        self._max_positions = config.max_positions
        self.output_size = config.hidden_size
        with self.name_scope():
            self.bert = BERT(config, num_pieces=num_pieces, prefix="")
            self.dropout = nn.Dropout(config.dropout)

    def embedding_parameters(self) -> List[gluon.Parameter]:
        return self.bert.embedding_parameters()

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        pieces, lengths, firsts = batch.inputs  # (N, P), (N,), (N, T)
        check_lengths(lengths, pieces.shape[1])
        check_ids("pieces", pieces, self._num_pieces)
        check_ids("first pieces", firsts, pieces.shape[1])
        if pieces.shape[1] > self._max_positions:
            raise UserError(
                f"an utterance has {pieces.shape[1]} word pieces, but "
                f"model.max_positions is {self._max_positions}; lower data.max_pieces"
            )
        return (
            mx.nd.array(pieces, ctx=context, dtype="int32"),
            mx.nd.array(lengths, ctx=context, dtype="float32"),
            mx.nd.array(firsts, ctx=context, dtype="float32"),
        )

    def hybrid_forward(self, F, pieces, piece_lengths, firsts):
        sequence, pooled = self.bert(pieces, piece_lengths)  # (N, P, H), (N, H)
        rows = F.expand_dims(F.contrib.arange_like(firsts, axis=0), axis=1)  # (N, 1)
        places = F.stack(F.broadcast_like(rows, firsts), firsts, axis=0)  # (2, N, T)
        states = F.gather_nd(sequence, places)  # (N, T, H)
        return self.dropout(states), self.dropout(pooled)


def build_encoder(config: BERTConfig, data: DataConfig, vocabulary: Vocabulary) -> BERTEncoder:
    assert vocabulary.tokenizer is not None  # the family has pieces
    if data.max_pieces > config.max_positions:
        raise UserError(
            f"data.max_pieces is {data.max_pieces}, but the model has only "
            f"{config.max_positions} positions (model.max_positions); lower it"
        )
    return BERTEncoder(config, num_pieces=len(vocabulary.tokenizer), prefix="bert_")


def read_start(config: BERTConfig) -> Optional[Checkpoint]:
    """Read the checkpoint that a BERT starts from, if its settings name one."""
    if config.checkpoint is None:
        return None
    checkpoint = read_checkpoint(config.checkpoint)
    require_sizes(config, checkpoint)
    return checkpoint


FAMILY = Family(
    name="bert",
    config=BERTConfig,
    has_pieces=True,
    build=build_encoder,
    read_checkpoint=read_start,
    load_checkpoint=lambda encoder, checkpoint: load_bert(encoder.bert, checkpoint),
)
