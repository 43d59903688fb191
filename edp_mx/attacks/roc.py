"""How well scores tell members from non-members, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from edp_mx.errors import UserError

FPRS = (0.01, 0.001)
Interval = Tuple[float, float]


class Curve(NamedTuple):
    """Every point of a ROC curve, from "nobody" to "everybody".

    Shapes: fpr, tpr, thresholds (P,); at point p all with a score of `thresholds[p]` or more are
    called members (the first threshold is +inf).
    """

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """A number and its interval."""

    value: float
    interval: Interval

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON."""
        return {"value": self.value, "low": self.interval[0], "high": self.interval[1]}

    def describe(self) -> str:
        """E.g. "67.5 % (66.1 to 68.9)"."""
        low, high = (100 * end for end in self.interval)
        return f"{100 * self.value:.1f} % ({low:.1f} to {high:.1f})"


@dataclass(frozen=True)
class Success:
    """How well one attack does.

    Attributes:
        auc: chance that a member scores higher than a non-member, ties counting half.
        tpr_at_fpr: false-positive rate -> largest share of members found within it.
        balanced_accuracy: at the attack's own threshold; None where it has none.
        best_balanced_accuracy: at the threshold that is best in hindsight.
        members, non_members: how many were judged.
        confidence: of the intervals (bootstrap, members and non-members drawn apart).
    """

    auc: Estimate
    tpr_at_fpr: Dict[float, Estimate]
    balanced_accuracy: Optional[float]
    best_balanced_accuracy: float
    members: int
    non_members: int
    confidence: float

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON, for `attack.json`."""
        return {
            "auc": self.auc.to_dict(),
            "tpr_at_fpr": {f"{fpr:g}": tpr.to_dict() for fpr, tpr in self.tpr_at_fpr.items()},
            "balanced_accuracy": self.balanced_accuracy,
            "best_balanced_accuracy": self.best_balanced_accuracy,
            "members": self.members,
            "non_members": self.non_members,
            "confidence": self.confidence,
        }


def roc_curve(scores: np.ndarray, is_member: np.ndarray) -> Curve:
    """The ROC curve; equal scores are one step.

    Shapes: scores (U,) · is_member (U,).

    Raises:
        UserError: there are no members, no non-members, or a score is no number.
    """
    return _curve(*_steps(scores, is_member))


def tpr_within(curve: Curve, fpr: float) -> float:
    """The largest TPR of a threshold whose FPR is at most `fpr`; nothing is interpolated."""
    return float(curve.tpr[np.searchsorted(curve.fpr, fpr, side="right") - 1])


def area(curve: Curve) -> float:
    """Area under the curve, by trapezoids: ties count half."""
    return float((np.diff(curve.fpr) * (curve.tpr[1:] + curve.tpr[:-1])).sum() / 2)


def measure(
    scores: np.ndarray,
    is_member: np.ndarray,
    *,
    seed: int,
    threshold: Optional[float] = None,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Success:
    """All that is reported of an attack.

    Args:
        scores: one an utterance; high means "is a member". Infinite ones are allowed.
        threshold: the attack's own: a score above it says "member".
        draws: bootstrap samples; the scores are sorted once, so that each takes linear time.

    Raises:
        UserError: there are no members, no non-members, or a score is no number.

    Shapes: scores (U,) · is_member (U,).

    Edge cases: an FPR below one over the number of non-members allows no false alarm at all.
    """
    is_member = np.asarray(is_member, bool)
    members, others, thresholds = _steps(scores, is_member)
    curve = _curve(members, others, thresholds)
    size = len(thresholds)
    places = [np.repeat(np.arange(size), counts) for counts in (members, others)]
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0xB007]))
    drawn = np.empty((draws, 1 + len(FPRS)))  # AUC and TPRs of each sample
    for row in drawn:
        counts = [_resample(place, size, generator) for place in places]
        sample = _curve(counts[0], counts[1], thresholds)
        row[:] = [area(sample), *(tpr_within(sample, fpr) for fpr in FPRS)]
    tail = (1 - confidence) / 2
    lows, highs = np.quantile(drawn, [tail, 1 - tail], axis=0)
    values = [area(curve), *(tpr_within(curve, fpr) for fpr in FPRS)]
    estimates = [
        Estimate(value, (min(float(low), value), max(float(high), value)))
        for value, low, high in zip(values, lows, highs)
    ]
    own = None
    if threshold is not None:
        says = np.asarray(scores) > threshold
        own = float(says[is_member].mean() + (~says[~is_member]).mean()) / 2
    return Success(
        auc=estimates[0],
        tpr_at_fpr=dict(zip(FPRS, estimates[1:])),
        balanced_accuracy=own,
        best_balanced_accuracy=float((1 + curve.tpr - curve.fpr).max() / 2),
        members=int(members.sum()),
        non_members=int(others.sum()),
        confidence=confidence,
    )


def _steps(scores: np.ndarray, is_member: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Members and non-members at each distinct score, the highest first."""
    scores, is_member = np.asarray(scores, np.float64), np.asarray(is_member, bool)
    if np.isnan(scores).any():
        raise UserError(f"{np.isnan(scores).sum()} scores are not numbers: the model has diverged")
    if is_member.all() or not is_member.any():
        kind = "non-members" if is_member.any() else "members"
        raise UserError(f"an attack needs members and non-members, and there are no {kind}")
    values, place = np.unique(scores, return_inverse=True)
    members = np.bincount(place[is_member], minlength=len(values))[::-1]
    others = np.bincount(place[~is_member], minlength=len(values))[::-1]
    return members, others, values[::-1]


def _curve(members: np.ndarray, others: np.ndarray, thresholds: np.ndarray) -> Curve:
    """From counts at falling thresholds."""
    tpr = np.concatenate([[0.0], np.cumsum(members) / members.sum()])
    fpr = np.concatenate([[0.0], np.cumsum(others) / others.sum()])
    return Curve(fpr, tpr, np.concatenate([[np.inf], thresholds]))


def _resample(places: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """As many drawn with replacement: counts at each of `size` scores."""
    drawn = generator.integers(0, len(places), size=len(places))
    return np.bincount(places[drawn], minlength=size)
