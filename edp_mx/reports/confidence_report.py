"""The confidence of a model in the labels of utterances: a report, and settings to answer by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.confidence import Confidences, best_temperature
from edp_mx.reports.table import render_table
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.tasks.confidence import Confidence

SHOWN = (0.3, 0.5, 0.7, 0.9)  # thresholds beside the one that is chosen
_LEARNED = """\
Temperature and threshold were learned from these utterances, which no ε covers.
If they are private, choose both on others that are not: --file."""


@dataclass(frozen=True)
class ConfidenceReport:
    """Confidences at temperature 1, and at the one that is set or was chosen.

    Attributes:
        is_chosen: whether temperature and threshold were chosen on the utterances.
        threshold: the one that is set, or was chosen; None if nothing is out of scope.
    """

    plain: Confidences
    scaled: Confidences
    threshold: Optional[float]
    is_chosen: bool

    def to_dict(self) -> Dict[str, Any]:
        return {"confidence": {
            "in_scope": int(self.plain.is_known.sum()),
            "out_of_scope": int((~self.plain.is_known).sum()),
            "plain": self.plain.to_dict(*self._thresholds()),
            "scaled": self.scaled.to_dict(*self._thresholds()),
            "threshold": self.threshold,
        }}  # fmt: skip

    def describe(self) -> str:
        known, scaled = self.plain.is_known, self.scaled
        both = (self.plain, scaled)
        rows = [["calibration error", *(f"{each.calibration_error():.2%}" for each in both)]]
        if not known.all():
            rows.append(["ROC AUC", *(f"{each.auc():.2%}" for each in both)])
        heading = ["", *(f"temperature={each.temperature:g}" for each in both)]
        at = f"at temperature={scaled.temperature:g}"
        lines = [
            f"confidence       {known.sum():>8} utterances in scope, {(~known).sum()} out of scope",
            render_table(heading, rows),
            "",
            render_table(
                [at, "right", "refused", "found", "all right"],
                [self._row(each) for each in self._thresholds()],
            ),
            "right, refused: of those in scope; found: of those out of scope",
        ]
        if self.is_chosen:
            lines.append(f"least cross entropy: temperature={scaled.temperature:g}")
            if self.threshold is not None:
                lines.append(f"best mean of right and found: threshold={self.threshold:g}")
            lines.append(_LEARNED)
        return "\n".join(lines)

    def _thresholds(self) -> List[float]:
        own = () if self.threshold is None else (self.threshold,)
        return sorted({*own, *(SHOWN if self.is_chosen else ())})

    def _row(self, threshold: float) -> List[str]:
        at = self.scaled.at(threshold)
        found = "–" if at.found is None else f"{at.found:.2%}"
        right, refused, both = (f"{each:.2%}" for each in (at.right, at.refused, at.accuracy))
        return [f"threshold={threshold:g}", right, refused, found, both]


def confidence_report(
    trained: TrainedRun,
    utterances: Sequence[Utterance],
    label_scores: np.ndarray,
    *,
    is_test: bool,
) -> ConfidenceReport:
    """Report on the confidence in labels, at the model's temperature and threshold if they are set.

    Otherwise both are chosen. A label that the model does not know is out of scope, as is its own
    label for that.

    Args:
        label_scores: of all labels of the model, (N, I).
        is_test: these are the run's own test part, so that its record has what set ones come to.

    Raises:
        UserError: the model knows the label of no utterance.
    """
    answering, scores = trained.model.answering, label_scores
    assert isinstance(answering, Confidence)  # it has labels
    is_set = (answering.temperature, answering.threshold) != (1, 0)
    ids = {label: number for number, label in enumerate(trained.vocabulary.intents)}
    none = ids.pop(answering.out_of_scope, None)
    labels = np.array([ids.get(utterance.intent, -1) for utterance in utterances])  # (N,)
    if not (labels >= 0).any():
        raise UserError("the model knows the label of no utterance, so that none is in scope")
    temperature = answering.temperature if is_set else best_temperature(scores, labels)
    plain, scaled = (Confidences.of(scores, labels, each, none) for each in (1.0, temperature))
    threshold: Optional[float] = answering.threshold
    if not is_set:
        threshold = None if plain.is_known.all() else scaled.best_threshold()
    elif is_test:
        trained.keep_answered({"accuracy": scaled.at(answering.threshold).accuracy})
    return ConfidenceReport(plain, scaled, threshold, is_chosen=not is_set)
