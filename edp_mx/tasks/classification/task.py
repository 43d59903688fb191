"""The task `classification`: a label per text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from edp_mx.data.utterance import Utterance
from edp_mx.tasks.classification.answer import Classified
from edp_mx.tasks.classification.scores import ClassificationScores, score_labels
from edp_mx.tasks.task import LabellingTask, Metric, Shortfall

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.classification.model import Classifier


class Classification(LabellingTask):
    """One label per text."""

    name = "classification"
    metrics = (
        Metric("accuracy", "accuracy", "accuracy"),
        Metric("macro_f1", "macro F1", "F1"),
    )
    has_slots = False
    label = "a label"

    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> Classifier:  # noqa: ARG002
        """See `Task`."""
        from edp_mx.tasks.classification.model import Classifier

        return Classifier.upon_labels(encoder, num_labels=len(vocabulary.intents))

    def fill(self, hypotheses: List[Utterance], guess: Any, vocabulary: Vocabulary) -> None:
        """See `Task`."""
        for index, label in zip(*(array.tolist() for array in guess)):
            hypotheses[index] = replace(hypotheses[index], intent=vocabulary.intents[label])

    def evaluate(
        self, references: Sequence[Utterance], hypotheses: Sequence[Utterance]
    ) -> ClassificationScores:
        """See `Task`."""
        return score_labels(*([each.intent for each in side] for side in (references, hypotheses)))

    def constant_of(self, labels: Mapping[str, int], num_slots: int) -> Dict[str, Any]:  # noqa: ARG002
        """See `LabellingTask`; the answered label has an F1 of 2p / (1 + p), all others 0."""
        common, count = min(labels.items(), key=lambda item: (-item[1], item[0]))
        share = count / sum(labels.values())
        f1 = 2 * share / (1 + share) / len(labels)
        return {"label": common, **self.shares({"accuracy": share, "macro_f1": f1})}

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:
        """See `Task`."""
        return f'always "{baseline["label"]}"'

    def answer_of(self, found: Mapping[str, Any]) -> Classified:
        """See `LabellingTask`."""
        tokens, confidences = tuple(found["tokens"]), tuple(found["confidences"].items())
        return Classified(tokens, found["label"], confidences)

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        """See `Task`."""
        return self.metric.no_better_than(baseline["label"], scores, baseline)


CLASSIFICATION = Classification()
