"""All scores of a corpus at once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from operator import eq
from typing import Any, Dict, Protocol, Sequence, Tuple, Union, runtime_checkable

from edp_mx.metrics.ser import Counts, count_errors
from edp_mx.metrics.spans import check_pairs, score_slots


@runtime_checkable
class Annotated(Protocol):
    """Anything with BIO tags and an intent, such as an utterance."""

    @property
    def slots(self) -> Sequence[str]: ...

    @property
    def intent(self) -> str: ...


Annotation = Union[Annotated, Tuple[Sequence[str], str]]


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
    references: Sequence[Annotation], hypotheses: Sequence[Annotation], alignment: str = "overlap"
) -> Scores:
    """Compare hypotheses with references, utterance by utterance, in the same order.

    Args:
        references: objects with `slots` and `intent`, or pairs (tags, intent).
        hypotheses: likewise.
        alignment: overlap, type or exact; see `ser.align`. Only the SER depends on it.
    """
    check_pairs(references, hypotheses)
    wanted_tags, wanted_intents = zip(*map(_as_pair, references))
    found_tags, found_intents = zip(*map(_as_pair, hypotheses))
    pooled = Counts()
    for wanted, found, meant, understood in zip(
        wanted_tags, found_tags, wanted_intents, found_intents
    ):
        intents = {"reference_intent": meant, "hypothesis_intent": understood}
        pooled += count_errors(wanted, found, **intents, alignment=alignment)
    slots = {f"slot_{k}": v for k, v in score_slots(wanted_tags, found_tags)._asdict().items()}
    return Scores(
        ser=pooled.ser,
        **asdict(pooled),
        intent_accuracy=sum(map(eq, wanted_intents, found_intents)) / len(references),
        **slots,
        utterances=len(references),
    )


def _as_pair(item: Annotation) -> Tuple[Sequence[str], str]:
    """(tags, intent) of either form."""
    return (item.slots, item.intent) if isinstance(item, Annotated) else item
