"""The whole model: an encoder, an intent head and a slot head."""

from __future__ import annotations

from typing import Iterable, Iterator, List, NamedTuple, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.models.crf import SlotHead
from edp_mx.models.encoder import Encoder
from edp_mx.models.forward_backward import token_mask
from edp_mx.models.id_ranges import check_ids
from edp_mx.models.initialization import initialize
from edp_mx.models.quick import quicken


class Outputs(NamedTuple):
    """The network's outputs for a batch; values at padding are meaningless.

    Shapes: emissions (N, T, K), intent_scores (N, I).
    """

    batch: Batch
    emissions: np.ndarray
    intent_scores: np.ndarray


class Predictions(NamedTuple):
    """The predicted labels of a batch.

    Shapes: slots, N arrays (T_n,) of tag ids · slot_confidences, N arrays (T_n,) of their
    probabilities · intents (N,) · intent_probabilities (N, I).
    """

    slots: List[np.ndarray]
    slot_confidences: List[np.ndarray]
    intents: np.ndarray
    intent_probabilities: np.ndarray


class IntentSlotModel(gluon.Block):
    """An encoder, an intent head and a slot head, with K tags.


    Guarantee: an example's loss depends on no other example of its batch, except through dropout's
    random draws.
    """

    def __init__(
        self, encoder: Encoder, intent: nn.Dense, slot: SlotHead, *, intent_weight: float = 1.0
    ) -> None:
        super().__init__(prefix="")  # the parts' own prefixes give the same names in every process
        self.encoder, self.intent, self.slot = encoder, intent, slot
        self.intent_weight = intent_weight

    def forward(self, batch: Batch):
        """Return emissions and intent scores. Shapes: (N, T, K), (N, I)."""
        context = self.slot.crf.context
        states, pooled = self.encoder(*self.encoder.inputs(batch, context))
        return self.slot(states), self.intent(pooled)

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the slots' negative log-likelihood plus the intent's cross entropy, (N,).

        Source: paper, "sum of the CRF loss (NER) and the cross entropy loss (IC)".
        """
        mask = token_mask(batch.lengths, batch.slots.shape[1])  # (N, T)
        check_ids("slots", batch.slots[mask], self.slot.crf.num_tags)
        check_ids("intents", batch.intents, self.intent.weight.shape[0])
        emissions, intent_scores = self(batch)
        slot_losses = self.slot.crf(emissions, batch.slots, batch.lengths)  # (N,)
        intent_losses = cross_entropy(intent_scores, batch.intents)  # (N,)
        return slot_losses + self.intent_weight * intent_losses

    def outputs(self, batches: Iterable[Batch]) -> Iterator[Outputs]:
        """Yield the network's outputs per batch, without dropout and without recording.

        MXNet computes in a thread of its own: the next batch is being computed while the caller
        works on one, and the batch after it is being made.
        """
        started: Optional[Tuple[Batch, mx.nd.NDArray, mx.nd.NDArray]] = None
        for batch in batches:
            finished = None if started is None else _fetch(*started)
            with mx.autograd.pause(train_mode=False):
                started = (batch, *self(batch))
            if finished is not None:
                yield finished
        if started is not None:
            yield _fetch(*started)

    def predict(self, batch: Batch) -> Predictions:
        """Return the most likely intents and slots with their probabilities."""
        ((_, predictions),) = self.predict_each([batch])
        return predictions

    def predict_each(self, batches: Iterable[Batch]) -> Iterator[Tuple[Batch, Predictions]]:
        """Yield each batch with its predictions; the next one is computed meanwhile."""
        for batch, emissions, intent_scores in self.outputs(batches):
            slots, slot_confidences = self.slot.crf.decode(emissions, batch.lengths)
            scores = intent_scores.astype(np.float64)  # (N, I)
            probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            intents = scores.argmax(axis=1)  # (N,)
            yield batch, Predictions(slots, slot_confidences, intents, probabilities)


def cross_entropy(scores: mx.nd.NDArray, labels: np.ndarray) -> mx.nd.NDArray:
    """Return −log of the true label's probability. Shapes: scores (N, I) · labels (N,) → (N,)."""
    labels = mx.nd.array(labels, ctx=scores.context, dtype="int32")
    return -mx.nd.pick(mx.nd.log_softmax(scores, axis=1), labels, axis=1)


def _fetch(batch: Batch, emissions: mx.nd.NDArray, intent_scores: mx.nd.NDArray) -> Outputs:
    return Outputs(batch, emissions.asnumpy(), intent_scores.asnumpy())


def build_model(
    encoder: Encoder,
    *,
    num_slots: int,
    num_intents: int,
    seed: int,
    context: mx.Context,
    intent_weight: float = 1.0,
) -> IntentSlotModel:
    """Build a model that is ready to train, with the same parameter names in every process."""
    size = encoder.output_size
    model = IntentSlotModel(
        encoder,
        nn.Dense(num_intents, in_units=encoder.num_pooled * size, prefix="intent_dense_"),
        SlotHead(size, num_slots, prefix="slot_"),
        intent_weight=intent_weight,
    )
    initialize(encoder, seed=seed, context=context, rule=encoder.initial_values)
    for head in (model.intent, model.slot):
        initialize(head, seed=seed, context=context)
    quicken(model, context)
    model.hybridize(static_alloc=True)
    return model
