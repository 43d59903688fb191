"""All scores of a corpus at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, Sequence

from edp_mx.metrics.by_label import of_all_slots
from edp_mx.metrics.ser import Counts, count_errors
from edp_mx.metrics.spans import check_pairs


@dataclass(frozen=True)
class Scores:
    """Scores of a corpus, as `edp-mx score` prints them; rates are ratios, not percentages.

    The counts of the semantic error rate `ser` are pooled over the corpus, intents included.
    """

    ser: float
    correct: int
    substitutions: int
    deletions: int
    insertions: int
    intent_accuracy: float
    slot_precision: float
    slot_recall: float
    slot_f1: float
    utterances: int

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """Return lines for the console, in per cent."""
        return "\n".join(
            (
                f"utterances       {self.utterances:>8}",
                f"SER              {100 * self.ser:>7.2f}%  {self.substitutions} substituted, "
                f"{self.deletions} deleted, {self.insertions} inserted, {self.correct} correct "
                "(the intent is one slot)",
                f"intent accuracy  {100 * self.intent_accuracy:>7.2f}%",
                f"slot F1          {100 * self.slot_f1:>7.2f}%  "
                f"precision {100 * self.slot_precision:.2f}%, "
                f"recall {100 * self.slot_recall:.2f}%",
            )
        )


def evaluate(
    references: Sequence[Any], hypotheses: Sequence[Any], alignment: str = "overlap"
) -> Scores:
    """Compare hypotheses with references, utterances with `slots` and `intent` in the same order.

    Args:
        alignment: overlap, type or exact; see `ser.align`. Only the SER depends on it.
    """
    check_pairs(references, hypotheses)
    pooled = Counts()
    for wanted, found in zip(references, hypotheses):
        intents = {"reference_intent": wanted.intent, "hypothesis_intent": found.intent}
        pooled += count_errors(wanted.slots, found.slots, **intents, alignment=alignment)
    slots = of_all_slots(*([each.slots for each in side] for side in (references, hypotheses)))
    right = sum(wanted.intent == found.intent for wanted, found in zip(references, hypotheses))
    return Scores(
        ser=pooled.ser,
        **asdict(pooled),
        intent_accuracy=right / len(references),
        slot_precision=slots.precision,
        slot_recall=slots.recall,
        slot_f1=slots.f1,
        utterances=len(references),
    )
