"""Scores of a classification."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, Sequence

from edp_mx.metrics.slots import check_pairs


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of a corpus, as shares of 1; `correct` of `texts` have the right label."""

    accuracy: float
    macro_f1: float
    correct: int
    texts: int

    def to_dict(self) -> Dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return lines for the console, in per cent."""
        return (
            f"texts            {self.texts:>8}\n"
            f"accuracy         {100 * self.accuracy:>7.2f}%  {self.correct} correct\n"
            f"macro F1         {100 * self.macro_f1:>7.2f}%  (mean over the labels)"
        )


def score_labels(references: Sequence[str], hypotheses: Sequence[str]) -> ClassificationScores:
    """Compare labels, in the same order.

    Edge cases: the macro F1 is the mean over all labels that occur on either side; that of a label
        that is never right is 0.

    Raises:
        UserError: there are none, or not equally many of both.

    Source: scikit-learn's `f1_score(average="macro")`.
    """
    from sklearn.metrics import f1_score  # a second's import, and not needed to train

    check_pairs(references, hypotheses)
    correct = sum(map(str.__eq__, references, hypotheses))
    macro_f1 = f1_score(references, hypotheses, average="macro", zero_division=0)
    count = len(references)
    return ClassificationScores(correct / count, float(macro_f1), correct, count)
