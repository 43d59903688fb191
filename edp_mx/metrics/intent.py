"""Intent accuracy."""

from __future__ import annotations

from typing import Sequence

from edp_mx.metrics.pairs import check_pairs


def intent_accuracy(references: Sequence[str], hypotheses: Sequence[str]) -> float:
    """The fraction of utterances whose intent is right.

    Raises:
        UserError: no utterances, or not as many hypotheses as references.

    Example:
        >>> intent_accuracy(["greet", "bye"], ["greet", "greet"])
        0.5
    """
    check_pairs(references, hypotheses)
    right = sum(reference == hypothesis for reference, hypothesis in zip(references, hypotheses))
    return right / len(references)
