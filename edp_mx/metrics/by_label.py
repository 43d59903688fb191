"""Scores of each label by itself, and the labels that are taken for each other."""

from __future__ import annotations

from collections import Counter
from typing import Iterable, List, NamedTuple, Sequence, Tuple

from edp_mx.metrics.spans import spans_of


class OfLabel(NamedTuple):
    """How a label was found: how often it is there, how often it was found, and how often rightly.

    Shares of nothing are 0, as in the macro F1 and in seqeval.
    """

    label: str
    wanted: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.wanted + self.found) if self.right else 0.0

    @property
    def errors(self) -> int:
        """How often it was missed, and how often it was found where it is not."""
        return self.wanted + self.found - 2 * self.right


def by_intent(wanted: Sequence[str], found: Sequence[str]) -> List[OfLabel]:
    """Return each label of utterances, the one with most errors first."""
    return _count(wanted, found, (one for one, other in zip(wanted, found) if one == other))


def by_slot(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> List[OfLabel]:
    """Return each type of slot, from BIO tags; a slot is right if its span and type are.

    Source: conlleval, as the slot F1 of a corpus.
    """
    sides = [[set(spans_of(tags)) for tags in side] for side in (wanted, found)]
    both = [one & other for one, other in zip(*sides)]
    return _count(*([span.type for spans in side for span in spans] for side in (*sides, both)))


def of_all_slots(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> OfLabel:
    """Return how the slots of a corpus were found, whatever their type; see `by_slot`.

    Source: seqeval's default mode, average "micro".
    """
    each = by_slot(wanted, found)
    counts = ("wanted", "found", "right")
    return OfLabel("", *(sum(getattr(slot, count) for slot in each) for count in counts))


def confusions(wanted: Sequence[str], found: Sequence[str]) -> List[Tuple[str, str, int]]:
    """Return (label, what was found instead, how often), the most frequent first."""
    pairs = Counter((one, other) for one, other in zip(wanted, found) if one != other)
    return [(*pair, count) for pair, count in sorted(pairs.items(), key=lambda x: (-x[1], x[0]))]


def _count(wanted: Iterable[str], found: Iterable[str], right: Iterable[str]) -> List[OfLabel]:
    counts = [Counter(side) for side in (wanted, found, right)]
    labels = [OfLabel(name, *(side[name] for side in counts)) for name in counts[0] | counts[1]]
    return sorted(labels, key=lambda each: (-each.errors, each.label))
