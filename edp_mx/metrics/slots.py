"""Precision, recall and F1 of slots, micro-averaged over a corpus."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from edp_mx.errors import UserError
from edp_mx.metrics.spans import spans_of


def check_pairs(references: Sequence[Any], hypotheses: Sequence[Any]) -> None:
    """Refuse anything but one hypothesis per reference, and an empty corpus."""
    if len(references) != len(hypotheses):
        raise UserError(
            f"there are {len(references)} references but {len(hypotheses)} hypotheses; "
            "each utterance needs one of both"
        )
    if not references:
        raise UserError("there is nothing to score: no utterances")


class SlotScores(NamedTuple):
    """Ratios from 0 to 1."""

    precision: float
    recall: float
    f1: float


def score_slots(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> SlotScores:
    """Score slots, each of which counts only if its name, start and end are right.

    Edge cases: 0 where the denominator is 0, as in seqeval (no slots on one side or on both).

    Source: seqeval's default mode, average "micro".
    """
    check_pairs(references, hypotheses)
    right = wanted = found = 0
    for reference, hypothesis in zip(references, hypotheses):
        ours, theirs = set(spans_of(reference)), set(spans_of(hypothesis))
        right += len(ours & theirs)
        wanted += len(ours)
        found += len(theirs)
    precision = right / found if found else 0.0
    recall = right / wanted if wanted else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return SlotScores(precision, recall, f1)
