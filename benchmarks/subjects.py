"""What the benchmarks train: a model at the paper's size on a synthetic batch."""

from __future__ import annotations

from functools import partial
from typing import Iterator, Optional, Union

import mxnet as mx
import numpy as np

from edp_mx.data.batching import Batch, PieceInputs, WordInputs
from edp_mx.models.bert import BERTConfig
from edp_mx.models.bert_encoder import BERTEncoder
from edp_mx.models.clc import CLCConfig, CLCEncoder
from edp_mx.models.intent_slot import IntentSlotModel, build_model, cross_entropy
from edp_mx.privacy.clipping import Losses
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.runtime.distributed import Workers
from edp_mx.training.gradient import seed_dropout

FAMILIES = ("clc", "bert")
WORDS, WORD_DIMENSION, LETTERS, CHARACTERS = 5_000, 300, 80, 12
PIECES, SLOTS, INTENTS = 30_522, 120, 20


def synthetic_batch(
    family: str, *, examples: int, tokens: int, shortest: int, seed: int = 0
) -> Batch:
    """Random utterances of `shortest` to `tokens` tokens; for BERT a token is one piece."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(shortest, tokens + 1, examples).astype(np.int32)
    lengths[0] = tokens
    shape = (examples, tokens)
    mask = np.arange(tokens) < lengths[:, None]  # (N, T)

    def ids(first: int, end: int) -> np.ndarray:
        return (generator.integers(first, end, shape) * mask).astype(np.int32)

    if family == "clc":
        spelled = generator.integers(2, LETTERS, (*shape, CHARACTERS)) * mask[:, :, None]
        inputs = WordInputs(words=ids(2, WORDS), characters=spelled.astype(np.int32))
    else:
        pieces = np.pad(ids(1_000, PIECES), ((0, 0), (1, 1)))  # (N, T+2)
        pieces[:, 0] = 1  # stands for [CLS]
        pieces[np.arange(examples), lengths + 1] = 2  # stands for [SEP]
        firsts = (np.arange(1, tokens + 1) * mask).astype(np.int32)
        inputs = PieceInputs(pieces, lengths + 2, firsts)
    return Batch(
        inputs=inputs,
        lengths=lengths,
        slots=ids(0, SLOTS),
        intents=generator.integers(0, INTENTS, examples).astype(np.int32),
        indices=np.arange(examples),
    )


def paper_model(family: str, *, has_crf: bool) -> IntentSlotModel:
    """CLC, whose word vectors are trained too, or BERT; if without its CRF, this is frozen."""
    if family == "clc":
        encoder = CLCEncoder(
            CLCConfig(),
            num_words=WORDS,
            num_characters=LETTERS,
            word_dimension=WORD_DIMENSION,
            is_embedding_trainable=True,
            prefix="clc_",
        )
    else:
        encoder = BERTEncoder(BERTConfig(), num_pieces=PIECES, prefix="bert_")
    model = build_model(encoder, num_slots=SLOTS, num_intents=INTENTS, seed=0, context=mx.cpu())
    if not has_crf:
        for parameter in model.slot.crf.collect_params().values():
            parameter.grad_req = "null"
    return model


class Subject:
    """What a variant trains: a new model of a family, on a batch."""

    def __init__(self, family: str, batch: Batch, *, has_crf: bool, workers: Workers) -> None:
        self.model = paper_model(family, has_crf=has_crf)
        self.flat = FlatGradients(layers_of(self.model))
        self.batch = batch
        self.workers = workers
        self._has_crf = has_crf

    def losses(self, batch: Optional[Batch] = None) -> mx.nd.NDArray:
        """One an example, (N,), of its batch or of a part of it; dropout drawn as in training."""
        batch = self.batch if batch is None else batch
        seed_dropout(0, self.workers.rank)
        if self._has_crf:
            return self.model.loss(batch)
        emissions, intent_scores = self.model(batch)  # (N, T, K), (N, I)
        likely = mx.nd.pick(mx.nd.log_softmax(emissions), mx.nd.array(batch.slots))  # (N, T)
        mask = mx.nd.array(batch.mask.astype(np.float32))  # (N, T)
        return cross_entropy(intent_scores, batch.intents) - (likely * mask).sum(axis=1)

    def mean_loss(self) -> mx.nd.NDArray:
        """Of its batch as one micro-batch, (1,)."""
        return self.losses().sum() / len(self.batch)

    def chunks(self, size: int) -> Iterator[Losses]:
        """What makes the losses of each `size` examples."""
        for start in range(0, len(self.batch), size):
            yield partial(self.losses, part(self.batch, slice(start, start + size)))


def part(batch: Batch, rows: slice) -> Batch:
    """Some of a batch's utterances, without the padding that they no longer need."""
    lengths = batch.lengths[rows]
    tokens = int(lengths.max())
    inputs: Union[WordInputs, PieceInputs]
    if isinstance(batch.inputs, PieceInputs):
        pieces, piece_lengths, firsts = (array[rows] for array in batch.inputs)
        inputs = PieceInputs(pieces[:, : piece_lengths.max()], piece_lengths, firsts[:, :tokens])
    else:
        inputs = WordInputs(*(array[rows, :tokens] for array in batch.inputs))
    return Batch(
        inputs=inputs,
        lengths=lengths,
        slots=batch.slots[rows, :tokens],
        intents=batch.intents[rows],
        indices=batch.indices[rows],
    )
