"""Semantic error rate (SER): slots and intent of an utterance, counted together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import add
from typing import Callable, Dict, Sequence

from edp_mx.errors import UserError
from edp_mx.metrics.spans import Span, spans_of


@dataclass(frozen=True)
class Counts:
    """Correct slots, substitutions, deletions, insertions; counts of a corpus add up."""

    correct: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, vars(self).values(), vars(other).values()))

    @property
    def ser(self) -> float:
        """(S + D + I) / (C + S + D), a ratio; above 1 when much is inserted.

        Without any reference slot, 0 if nothing is inserted, otherwise infinite.
        """
        errors = self.substitutions + self.deletions + self.insertions
        references = self.correct + self.substitutions + self.deletions
        if references == 0:
            return float("inf") if errors else 0.0
        return errors / references


def count_overlapping(reference: Sequence[Span], hypothesis: Sequence[Span]) -> int:
    """Return the largest number of pairs of spans that share a token, each span in at most one.

    Both lists are sorted. Of the two first spans, the one that ends first cannot share tokens with
    a later span of the other list, so that pairing it now, or dropping it, is optimal.
    """
    pairs = i = j = 0
    while i < len(reference) and j < len(hypothesis):
        first, second = reference[i], hypothesis[j]
        share = first.start < second.end and second.start < first.end
        pairs += share
        i += share or first.end <= second.start
        j += share or second.end <= first.start
    return pairs


def count_same_type(reference: Sequence[Span], hypothesis: Sequence[Span]) -> int:
    """Return the largest number of pairs of spans with the same name, wherever they are."""
    names = Counter(span.type for span in reference) & Counter(span.type for span in hypothesis)
    return sum(names.values())


# alignment -> how many of the spans that are not identical pair up as substitutions
ALIGNMENTS: Dict[str, Callable[[Sequence[Span], Sequence[Span]], int]] = {
    "overlap": count_overlapping,
    "type": count_same_type,
    "exact": lambda *_: 0,
}


def align(
    reference: Sequence[Span], hypothesis: Sequence[Span], *, alignment: str = "overlap"
) -> Counts:
    """Compare the spans of one utterance.

    Identical spans (name, start, end) are correct. Of the rest, as many as possible are paired as
    substitutions, if they share a token (`overlap`), have the same name (`type`), or never
    (`exact`); spans without a partner are deleted or inserted.

    Departs: papers do not say how they align; `overlap` is our choice, the others are alternatives.
    """
    if alignment not in ALIGNMENTS:
        raise UserError(f"alignment is {alignment!r}; choose one of {', '.join(ALIGNMENTS)}")
    identical = set(reference) & set(hypothesis)
    left = [span for span in reference if span not in identical]
    right = [span for span in hypothesis if span not in identical]
    pairs = ALIGNMENTS[alignment](left, right)
    return Counts(len(identical), pairs, len(left) - pairs, len(right) - pairs)


def count_errors(
    reference_tags: Sequence[str],
    hypothesis_tags: Sequence[str],
    *,
    reference_intent: str,
    hypothesis_intent: str,
    alignment: str = "overlap",
) -> Counts:
    """Compare one utterance: its spans, and its intent as one more slot."""
    if len(reference_tags) != len(hypothesis_tags):
        raise UserError(
            f"the reference has {len(reference_tags)} slot tags, the hypothesis "
            f"{len(hypothesis_tags)}; both must have one per token"
        )
    slots = align(spans_of(reference_tags), spans_of(hypothesis_tags), alignment=alignment)
    same = reference_intent == hypothesis_intent
    return slots + Counts(correct=int(same), substitutions=int(not same))
