"""The task `intent_slot`: an intent per utterance, and slots as tags of its tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.metrics.evaluation import Scores, evaluate
from edp_mx.metrics.spans import bracketed, spans_of
from edp_mx.tasks.task import LabellingTask, Metric, Shortfall

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.intent_slot.model import IntentSlotModel


@dataclass(frozen=True)
class Understanding:
    """An utterance as the model understands it; a slot is as sure as the least sure of its tags."""

    utterance: Utterance
    intent_confidence: float
    slot_confidences: Tuple[float, ...]

    def spans(self) -> List[Dict[str, Any]]:
        """Return the slots with their text; `end` is the first token after the slot."""
        tokens = self.utterance.tokens
        return [
            {
                "slot": span.type,
                "text": " ".join(tokens[span.start : span.end]),
                "start": span.start,
                "end": span.end,
                "confidence": confidence,
            }
            for span, confidence in zip(spans_of(self.utterance.slots), self.slot_confidences)
        ]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {
            "tokens": list(self.utterance.tokens),
            "slots": list(self.utterance.slots),
            "intent": self.utterance.intent,
            "intent_confidence": self.intent_confidence,
            "spans": self.spans(),
        }

    def describe(self) -> str:
        """Return it as `predict` prints it for people, a line for each slot."""
        lines = [
            " ".join(self.utterance.tokens),
            f"  intent  {self.utterance.intent}  ({self.intent_confidence:.1%})",
        ]
        lines += [
            f"  slot    {span['slot']} = {span['text']!r}  ({span['confidence']:.1%})"
            for span in self.spans()
        ]
        return "\n".join(lines)

    def line(self) -> str:
        """Return it on one line: the intent, and the tokens with the slots in brackets."""
        utterance = self.utterance
        return f"{utterance.intent}: {bracketed(utterance.tokens, utterance.slots)}"


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
    answer_keys = ("intent",)

    def build(
        self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig
    ) -> IntentSlotModel:
        from edp_mx.tasks.intent_slot.model import IntentSlotModel, bio_moves

        return IntentSlotModel.upon_labels(
            encoder,
            num_slots=len(vocabulary.slots),
            num_intents=len(vocabulary.intents),
            intent_weight=config.intent_weight,
            moves=bio_moves(vocabulary.slots) if config.slot_moves == "bio" else None,
        )

    def fill(self, hypotheses: List[Utterance], guess: Understood, vocabulary: Vocabulary) -> None:
        indices, lengths, tags, intents = (array.tolist() for array in guess)
        names = [vocabulary.slots[tag] for tag in tags]  # (tokens,)
        start = 0
        for index, length, intent in zip(indices, lengths, intents):
            utterance = hypotheses[index]
            slots = fit_length(names[start : start + length], len(utterance.tokens))
            hypotheses[index] = replace(utterance, slots=slots, intent=vocabulary.intents[intent])
            start += length

    def evaluate(self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]) -> Scores:
        return evaluate(references, hypotheses)

    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:
        intent, count = min(labels.items(), key=lambda item: (-item[1], item[0]))
        total = sum(labels.values())
        wanted = total + num_slots  # SER counts the intent as one more slot
        ser, accuracy = (wanted - count) / wanted, count / total
        return {"intent": intent, "ser": ser, "intent_accuracy": accuracy, "slot_f1": 0.0}

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        return f'always "{baseline["intent"]}" and no slots'

    def answer_of(self, found: Mapping[str, Any]) -> Understanding:
        return Understanding(
            Utterance(tuple(found["tokens"]), tuple(found["slots"]), found["intent"]),
            found["intent_confidence"],
            tuple(span["confidence"] for span in found["spans"]),
        )

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
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
