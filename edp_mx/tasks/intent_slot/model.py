"""The model of intents and slots: an encoder, an intent head and a slot head."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.metrics.spans import balanced, spans_of, split_tag
from edp_mx.models.crf import SlotHead
from edp_mx.models.encoder import Encoder
from edp_mx.models.forward_backward import Chain
from edp_mx.models.id_ranges import check_ids
from edp_mx.models.viterbi import best_tags
from edp_mx.tasks.confidence import Confidence
from edp_mx.tasks.intent_slot.task import Understanding, Understood, fit_length
from edp_mx.tasks.model import Outputs, TaskModel, cross_entropy, probabilities

RULED_OUT = -1e4  # the score of a move that no other score makes up for


def bio_moves(tags: Sequence[str]) -> Chain:
    """Return scores of a chain over K tags that let an I- tag only go on with its own slot.

    Example:
        >>> moves, start, _ = bio_moves(["O", "B-to", "I-to", "B-at"])
        >>> (moves[:, 2] == 0).tolist(), (start == 0).tolist()
        ([False, True, True, False], [True, True, False, True])
    """
    named = [split_tag(tag) for tag in tags]
    opens = np.array([prefix != "I" for prefix, _ in named])  # (K,)
    slots = np.array([name for _, name in named])
    goes_on = slots[:, None] == slots  # (K from, K to); O's name is no slot's
    moves, start = (np.where(may, 0.0, RULED_OUT) for may in (opens | goes_on, opens))
    return Chain(moves, start, np.zeros(len(tags)))


class IntentSlotModel(TaskModel):
    """An encoder, an intent head and a slot head, with K tags."""

    label_head: nn.Dense
    reads_tokens = True
    answering = Confidence()

    def __init__(
        self, encoder: Encoder, intent: nn.Dense, slot: SlotHead, *, intent_weight: float
    ) -> None:
        super().__init__(prefix="")  # the parts' own prefixes give the same names in every process
        self.encoder, self.label_head, self.slot = encoder, intent, slot
        self.intent_weight = intent_weight
        self.most_at_once = slot.crf.most_at_once

    @classmethod
    def upon_labels(
        cls,
        encoder: Encoder,
        *,
        num_slots: int,
        num_intents: int,
        intent_weight: float = 1.0,
        moves: Optional[Chain] = None,
    ) -> IntentSlotModel:
        """Put heads for so many tags and intents upon an encoder, without values.

        `moves` are given scores of the CRF, such as `bio_moves` has.
        """
        size = encoder.output_size
        intent = nn.Dense(num_intents, in_units=encoder.num_pooled * size, prefix="intent_dense_")
        slot = SlotHead(size, num_slots, moves, prefix="slot_")
        return cls(encoder, intent, slot, intent_weight=intent_weight)

    @property
    def heads(self) -> Dict[str, gluon.Block]:
        return {**super().heads, "slots": self.slot}

    def upon(self, encoder: Encoder) -> IntentSlotModel:
        return IntentSlotModel(
            encoder, self.label_head, self.slot, intent_weight=self.intent_weight
        )

    def chain(self) -> Chain:
        return self.slot.crf.chain()

    def forward(self, batch: Batch):
        """Return emissions and intent scores. Shapes: (N, T, K), (N, I)."""
        states, pooled = self.encoded(batch)
        return self.slot(states), self.label_head(pooled)

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the slots' negative log-likelihood plus the intent's cross entropy, (N,).

        Source: paper, "sum of the CRF loss (NER) and the cross entropy loss (IC)".
        """
        check_ids("slots", batch.slots[batch.mask], self.slot.crf.num_tags)
        check_ids("intents", batch.intents, self.label_head.weight.shape[0])
        emissions, intent_scores = self(batch)
        slot_losses = self.slot.crf(emissions, batch.slots, batch.lengths)  # (N,)
        intent_losses = cross_entropy(intent_scores, batch.intents)  # (N,)
        return slot_losses + self.intent_weight * intent_losses

    def guesses_of(self, outputs: Iterable[Outputs]) -> Iterator[Understood]:
        chain = self.chain()
        for batch, emissions, intent_scores in outputs:
            paths, _ = best_tags(emissions, batch.lengths, chain)
            tags = np.concatenate(paths).astype(np.int16)  # (tokens,)
            yield batch.indices, batch.lengths, tags, intent_scores.argmax(axis=1)

    def answers(
        self, batches: Iterable[Batch], asked: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Iterator[Tuple[int, Understanding]]:
        for batch, emissions, intent_scores in self.outputs(batches):
            paths, sure = self.slot.crf.decode(emissions, batch.lengths)  # N arrays (T_n,) each
            intents = intent_scores.argmax(axis=1).tolist()  # (N,)
            shares = probabilities(intent_scores / self.answering.temperature)  # (N, I)
            for row, index in enumerate(batch.indices.tolist()):
                tokens, intent = asked[index].tokens, intents[row]
                slots = fit_length(
                    balanced([vocabulary.slots[tag] for tag in paths[row]]), len(tokens)
                )
                confidence = float(shares[row, intent])
                label = self.answering.answer(vocabulary.intents[intent], confidence)
                spans = [sure[row][span.start : span.end] for span in spans_of(slots)]
                least = tuple(float(each.min()) for each in spans)
                yield index, Understanding(Utterance(tokens, slots, label), confidence, least)
