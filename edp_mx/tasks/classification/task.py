"""The task `classification`: a label per text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import check_pairs
from edp_mx.tasks.task import LabellingTask, Metric, Shortfall

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.classification.model import Classifier


SHOWN = 3  # labels that people are shown


@dataclass(frozen=True)
class Classified:
    """The label of a text as the model sees it, and how sure it is of each label, best first."""

    tokens: Tuple[str, ...]
    label: str
    confidences: Tuple[Tuple[str, float], ...]

    def to_dict(self) -> Dict[str, Any]:
        return {
            "tokens": list(self.tokens),
            "label": self.label,
            "confidence": self.confidences[0][1],
            "confidences": dict(self.confidences),
        }

    def describe(self) -> str:
        """Return it as `predict` prints it for people, a line for each of the likeliest labels."""
        shown = [f"  {name}  ({share:.1%})" for name, share in self.confidences[:SHOWN]]
        if self.label != self.confidences[0][0]:
            shown.insert(0, f"  {self.label}")
        return "\n".join([" ".join(self.tokens), *shown])

    def line(self) -> str:
        return f"{self.label}: {' '.join(self.tokens)}"


@dataclass(frozen=True)
class ClassificationScores:
    """Scores of a corpus, as shares of 1; `correct` of `texts` have the right label."""

    accuracy: float
    macro_f1: float
    correct: int
    texts: int

    def to_dict(self) -> Dict[str, Any]:
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


class Classification(LabellingTask):
    """One label per text."""

    name = "classification"
    metrics = (Metric("accuracy", "accuracy", "accuracy"), Metric("macro_f1", "macro F1", "F1"))
    has_slots = False
    label = "a label"
    answer_keys = ("label",)

    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> Classifier:  # noqa: ARG002
        from edp_mx.tasks.classification.model import Classifier

        return Classifier.upon_labels(encoder, num_labels=len(vocabulary.intents))

    def fill(self, hypotheses: List[Utterance], guess: Any, vocabulary: Vocabulary) -> None:
        for index, label in zip(*(array.tolist() for array in guess)):
            hypotheses[index] = replace(hypotheses[index], intent=vocabulary.intents[label])

    def evaluate(
        self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]
    ) -> ClassificationScores:
        return score_labels(*([each.intent for each in side] for side in (references, hypotheses)))

    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:  # noqa: ARG002
        """See `LabellingTask`; the answered label has an F1 of 2p / (1 + p), all others 0."""
        common, count = min(labels.items(), key=lambda item: (-item[1], item[0]))
        share = count / sum(labels.values())
        f1 = 2 * share / (1 + share) / len(labels)
        return {"label": common, **self.shares({"accuracy": share, "macro_f1": f1})}

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        return f'always "{baseline["label"]}"'

    def answer_of(self, found: Mapping[str, Any]) -> Classified:
        tokens, confidences = tuple(found["tokens"]), tuple(found["confidences"].items())
        return Classified(tokens, found["label"], confidences)

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        return self.metric.no_better_than(baseline["label"], scores, baseline)


CLASSIFICATION = Classification()
