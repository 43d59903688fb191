"""The task `intent_slot`: an intent per utterance, and slots as tags of its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.metrics.evaluation import Scores, evaluate
from edp_mx.tasks.intent_slot.understanding import Understanding
from edp_mx.tasks.task import LabellingTask, Metric, Shortfall

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.intent_slot.model import IntentSlotModel

# Of a batch: places in the corpus, lengths (N,), tag ids of all tokens one after the other, intents
Understood = Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class IntentSlot(LabellingTask):
    """Intents and slots, the task of the paper."""

    name = "intent_slot"
    metrics = (
        Metric("ser", "SER", "SER", is_error=True),
        Metric("intent_accuracy", "intent accuracy", "intent"),
        Metric("slot_f1", "slot F1", "F1"),
    )
    has_slots = True
    label = "an intent"

    def build(
        self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig
    ) -> IntentSlotModel:
        """See `Task`."""
        from edp_mx.tasks.intent_slot.model import IntentSlotModel

        return IntentSlotModel.upon_labels(
            encoder,
            num_slots=len(vocabulary.slots),
            num_intents=len(vocabulary.intents),
            intent_weight=config.intent_weight,
        )

    def fill(self, hypotheses: List[Utterance], guess: Understood, vocabulary: Vocabulary) -> None:
        """See `Task`."""
        indices, lengths, tags, intents = (array.tolist() for array in guess)
        names = [vocabulary.slots[tag] for tag in tags]  # (tokens,)
        start = 0
        for index, length, intent in zip(indices, lengths, intents):
            utterance = hypotheses[index]
            hypotheses[index] = Utterance(
                tokens=utterance.tokens,
                slots=fit_length(names[start : start + length], len(utterance.tokens)),
                intent=vocabulary.intents[intent],
                id=utterance.id,
            )
            start += length

    def evaluate(self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]) -> Scores:
        """See `Task`."""
        return evaluate(references, hypotheses)

    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:
        """See `LabellingTask`."""
        intent, count = min(labels.items(), key=lambda item: (-item[1], item[0]))
        total = sum(labels.values())
        wanted = total + num_slots  # SER counts the intent as one more slot
        ser, accuracy = (wanted - count) / wanted, count / total
        return {"intent": intent, "ser": ser, "intent_accuracy": accuracy, "slot_f1": 0.0}

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        """See `Task`."""
        return f'always "{baseline["intent"]}" and no slots'

    def answer_of(self, found: Mapping[str, Any]) -> Understanding:
        """See `LabellingTask`."""
        return Understanding(
            Utterance(tuple(found["tokens"]), tuple(found["slots"]), found["intent"]),
            found["intent_confidence"],
            tuple(span["confidence"] for span in found["spans"]),
        )

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """See `Task`."""
        answer, (_, accuracy, _) = baseline["intent"], self.metrics
        found = accuracy.no_better_than(answer, scores, baseline)
        if found is not None or scores["ser"] <= baseline["ser"]:
            return found
        said = (
            f'SER {100 * scores["ser"]:.2f} % is above always answering "{answer}" without any '
            f"slot ({100 * baseline['ser']:.2f} %)"
        )
        return Shortfall(said, "it inserts more wrong slots than it gets right")


def fit_length(tags: Sequence[str], length: int) -> Tuple[str, ...]:
    """Return tags for all tokens of an utterance that the model saw cut: O for the rest."""
    return tuple(tags) + ("O",) * (length - len(tags))


INTENT_SLOT = IntentSlot()
