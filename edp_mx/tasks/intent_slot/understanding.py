"""An utterance as a model understands it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import bracketed, spans_of


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
