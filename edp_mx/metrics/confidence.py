"""How far confidences can be believed, and whether they tell what is out of scope."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional, Tuple

import numpy as np
from scipy.special import log_softmax

BINS = 15  # of the calibration error
COLDEST, HOTTEST = 0.05, 20.0  # temperatures that are tried


@dataclass(frozen=True)
class AtThreshold:
    """What a threshold does, as shares of 1.

    Attributes:
        right: of what is in scope, answered, and with the right label.
        refused: of what is in scope, called out of scope.
        found: of what is out of scope, called so; None if nothing is.
        accuracy: of all, answered as they should be.
    """

    threshold: float
    right: float
    refused: float
    found: Optional[float]
    accuracy: float


@dataclass(frozen=True)
class Confidences:
    """The most likely label of each utterance at some temperature.

    Attributes:
        sure: the confidence of each, (N,).
        is_right: whether it is the label of the utterance, (N,).
        is_known: whether the model has a label for it; else it is out of scope, (N,).
        is_none: whether it is the model's own label for what is out of scope, (N,).
    """

    temperature: float
    sure: np.ndarray
    is_right: np.ndarray
    is_known: np.ndarray
    is_none: np.ndarray

    @classmethod
    def of(
        cls, scores: np.ndarray, labels: np.ndarray, temperature: float, none: Optional[int] = None
    ) -> Confidences:
        """Read off the scores. Shapes: scores (N, I), labels (N,), −1 of what is out of scope.

        Args:
            none: the model's own label for what is out of scope, if it has one.
        """
        shares = np.exp(log_softmax(scores.astype(np.float64) / temperature, axis=1))  # (N, I)
        best = shares.argmax(axis=1)  # (N,)
        return cls(temperature, shares.max(axis=1), best == labels, labels >= 0, best == none)

    def calibration_error(self) -> float:
        """Return the expected calibration error in scope.

        Source: Guo et al. 2017, equation 3, with 15 bins of equal width.
        """
        sure, is_right = self.sure[self.is_known], self.is_right[self.is_known]
        place = np.minimum((sure * BINS).astype(int), BINS - 1)  # (N,)
        gaps = np.bincount(place, sure - is_right, minlength=BINS)
        return float(np.abs(gaps).sum() / len(sure))

    def auc(self) -> Optional[float]:
        """Return the probability that an utterance in scope is surer than one out of scope."""
        if self.is_known.all():
            return None
        from sklearn.metrics import roc_auc_score  # a second's import

        return float(roc_auc_score(self.is_known, np.where(self.is_none, -1, 1) * self.sure))

    def at(self, threshold: float) -> AtThreshold:
        """Return what a threshold does."""
        is_answered, known = (self.sure >= threshold) & ~self.is_none, self.is_known
        found = None if known.all() else float(np.mean(~is_answered[~known]))
        is_right = np.where(known, is_answered & self.is_right, ~is_answered)
        right, refused = (float(np.mean(each[known])) for each in (is_right, ~is_answered))
        return AtThreshold(threshold, right, refused, found, float(np.mean(is_right)))

    def best_threshold(self) -> float:
        """Return the one of 0, 0.01 … 1 with the best mean of `right` and `found`."""
        tried = [self.at(percent / 100) for percent in range(101)]
        return max(tried, key=lambda each: each.right + (each.found or 0)).threshold

    def to_dict(self, *thresholds: float) -> Dict[str, Any]:
        """Return it for JSON, with what some thresholds do."""
        return {
            "temperature": self.temperature,
            "calibration_error": self.calibration_error(),
            "auc": self.auc(),
            "thresholds": [asdict(self.at(each)) for each in thresholds],
        }


def best_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the temperature of least cross entropy in scope, with two digits after the point.

    Shapes: scores (N, I), labels (N,), −1 of what is out of scope.
    Source: Guo et al. 2017, section 4.2.
    """
    from scipy.optimize import minimize_scalar

    known = labels >= 0
    scores, labels = scores[known].astype(np.float64), labels[known]
    rows = np.arange(len(labels))

    def loss(logarithm: float) -> float:
        return -float(log_softmax(scores / np.exp(logarithm), axis=1)[rows, labels].mean())

    bounds: Tuple[float, float] = (float(np.log(COLDEST)), float(np.log(HOTTEST)))
    return round(float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x)), 2)
