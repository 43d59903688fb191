"""BERT with the head of the masked language model."""

from __future__ import annotations

from typing import NamedTuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.data.masking import MaskedBatch
from edp_mx.models.bert import BERT, BERTConfig
from edp_mx.models.id_ranges import check_ids
from edp_mx.models.infilling import MaskedTransform


class Guesses(NamedTuple):
    """Of a batch's masked places: the sum of −ln p(true piece), how many are right, and all."""

    loss: float
    right: int
    places: int


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

    def hybrid_forward(self, F, states, places, piece_vectors, bias):
        states = self.transformed(F.gather_nd(states, places))  # (K, H)
        return F.FullyConnected(states, piece_vectors, bias, num_hidden=self._num_pieces)  # (K, V)


class MaskedLanguageModel(gluon.Block):
    """BERT and its head; the pooler is not trained, since the loss does not depend on it."""

    def __init__(self, config: BERTConfig, *, num_pieces: int) -> None:
        super().__init__(prefix="")  # the parts' own prefixes give the same names in every process
        self._num_pieces = num_pieces
        self.bert = BERT(config, num_pieces=num_pieces, prefix="bert_")
        self.bert.model.pooler.collect_params().setattr("grad_req", "null")
        self.head = MaskedPieceHead(config, num_pieces=num_pieces, prefix="masked_pieces_")

    def forward(self, batch: MaskedBatch):
        """Return the log-probabilities of all pieces at the masked places. Shapes: → (K, V)."""
        vectors = self.bert.piece_embedding
        context = vectors.list_ctx()[0]
        check_ids("pieces", batch.pieces, self._num_pieces)
        states, _ = self.bert(
            mx.nd.array(batch.pieces, ctx=context, dtype="int32"),
            mx.nd.array(batch.lengths, ctx=context, dtype="float32"),
        )  # (N, P, H)
        places = mx.nd.array(batch.places, ctx=context, dtype="int32")  # (2, K)
        scores = self.head(states, places, vectors.data())  # (K, V)
        return mx.nd.log_softmax(scores, axis=-1)

    def loss(self, batch: MaskedBatch) -> mx.nd.NDArray:
        """Return the mean cross entropy of the masked places, (1,)."""
        log_probabilities = self(batch)  # (K, V)
        context = log_probabilities.context
        targets = mx.nd.array(batch.targets, ctx=context, dtype="int32")  # (K,)
        shares = batch.counts / max(1.0, float(batch.counts.sum()))  # (K,)
        true = mx.nd.pick(log_probabilities, targets)  # (K,)
        return -(true * mx.nd.array(shares, ctx=context)).sum()

    def guess(self, batch: MaskedBatch) -> Guesses:
        """Score a batch without dropout and without recording."""
        with mx.autograd.pause(train_mode=False):
            log_probabilities = self(batch).asnumpy()  # (K, V)
        counts = batch.counts.astype(np.float64)  # (K,)
        true = log_probabilities[np.arange(len(counts)), batch.targets]  # (K,)
        right = log_probabilities.argmax(axis=1) == batch.targets  # (K,)
        return Guesses(-float(true @ counts), int(right @ counts), int(counts.sum()))
