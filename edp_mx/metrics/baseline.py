"""The scores of a model that has learned nothing but one intent."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Dict, Mapping, Sequence

from edp_mx.metrics.evaluation import Annotated
from edp_mx.metrics.slots import check_pairs
from edp_mx.metrics.spans import spans_of


@dataclass(frozen=True)
class Baseline:
    """Scores of the same answer to each utterance: one intent, and no slots; ratios.

    The intent is the most common one of the utterances that are scored, and therefore the best that
    a constant answer can be. It is not taken from the training part, about which it tells nothing.
    """

    intent: str
    ser: float
    intent_accuracy: float
    slot_f1: float = 0.0  # nothing is found

    def to_dict(self) -> Dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)


def constant_answer(references: Sequence[Annotated]) -> Baseline:
    """Return the scores of answering the most common intent of `references`, and no slots.

    Edge cases: of intents that are equally common, the first by name.
    """
    check_pairs(references, references)
    intents = Counter(reference.intent for reference in references)
    return baseline_of(intents, sum(len(spans_of(reference.slots)) for reference in references))


def baseline_of(intents: Mapping[str, int], num_spans: int) -> Baseline:
    """Return the same of utterances with these intents, so many of each, and so many spans."""
    intent, count = min(intents.items(), key=lambda item: (-item[1], item[0]))
    total = sum(intents.values())
    wanted = total + num_spans  # SER counts the intent as one more slot
    return Baseline(intent, (wanted - count) / wanted, count / total)
