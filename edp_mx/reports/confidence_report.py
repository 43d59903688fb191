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
from edp_mx.runtime.progress import Progress, no_progress
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
        """Return it for JSON."""
        return {"confidence": {
            "in_scope": int(self.plain.is_known.sum()),
            "out_of_scope": int((~self.plain.is_known).sum()),
            "plain": self.plain.to_dict(*self._thresholds()),
            "scaled": self.scaled.to_dict(*self._thresholds()),
            "threshold": self.threshold,
        }}  # fmt: skip

    def describe(self) -> str:
        """Return lines for the console."""
        known, scaled = self.plain.is_known, self.scaled
        both = (self.plain, scaled)
        rows = [["calibration error", *(f"{each.calibration_error():.2%}" for each in both)]]
        if not known.all():
            rows.append(["ROC AUC", *(f"{each.auc():.2%}" for each in both)])
        heading = ["", *(f"temperature={each.temperature:g}" for each in both)]
        lines = [
            f"confidence       {known.sum():>8} utterances in scope, {(~known).sum()} out of scope",
            render_table(heading, rows),
            "",
            render_table(
                [f"at temperature={scaled.temperature:g}", "right", "refused", "found"],
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
        return [f"threshold={threshold:g}", f"{at.right:.2%}", f"{at.refused:.2%}", found]


def confidence_report(
    trained: TrainedRun,
    utterances: Sequence[Utterance],
    is_set: bool,
    progress: Progress = no_progress,
) -> ConfidenceReport:
    """Report on the confidence in labels; a label that the model does not know is out of scope.

    Args:
        is_set: whether the model's own temperature and threshold are judged; else both are chosen.

    Raises:
        UserError: the model has no labels, or knows the label of no utterance.
    """
    answering = trained.model.answering
    if not isinstance(answering, Confidence):
        raise UserError(f"task: {trained.task.name} has no labels; leave out --confidence")
    ids = {label: number for number, label in enumerate(trained.vocabulary.intents)}
    labels = np.array([ids.get(utterance.intent, -1) for utterance in utterances])  # (N,)
    if not (labels >= 0).any():
        raise UserError("the model knows the label of no utterance, so that none is in scope")
    scores = trained.label_scores(utterances, progress)
    temperature = answering.temperature if is_set else best_temperature(scores, labels)
    plain, scaled = (Confidences.of(scores, labels, each) for each in (1.0, temperature))
    threshold: Optional[float] = answering.threshold
    if not is_set:
        threshold = None if plain.is_known.all() else scaled.best_threshold()
    return ConfidenceReport(plain, scaled, threshold, is_chosen=not is_set)
