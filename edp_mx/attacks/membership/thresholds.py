"""Attacks that need no other model: one number an utterance, and a threshold on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence

import numpy as np

from edp_mx.attacks.membership.scores import MembershipScores

PRIOR_WEIGHT = 5.0  # utterances that the mean over all intents counts for


@dataclass(frozen=True, eq=False)
class Guesses:
    """What one attack says of each utterance.

    Attributes:
        name: of the attack.
        says: how it comes to it, in a sentence.
        scores: (U,), high means "is a member".
        threshold: above it the attack says "member"; None where it names none.
    """

    name: str
    says: str
    scores: np.ndarray
    threshold: Optional[float] = None


def threshold_attacks(scores: MembershipScores) -> List[Guesses]:
    """Loss, loss calibrated by intent, the other label-aware signals, and the words alone.

    Source: Yeom et al. 2018 (loss); Song and Mittal 2021 (modified entropy, thresholds by class);
    Watson et al. 2022 (calibration).
    """
    found = [_by_loss(scores)]
    if scores.is_reference.any():
        found.append(_by_calibrated_loss(scores))
    found += _by_other_signals(scores)
    if scores.unknown_words is not None:
        found.append(_by_words(scores.unknown_words[scores.is_judged]))
    return found


def _by_loss(scores: MembershipScores) -> Guesses:
    loss = scores.signals.loss[scores.is_judged]  # (U,)
    return Guesses(
        "loss",
        "low training loss; the threshold is the members' mean loss, which the attacker is taken "
        "to know (Yeom et al.)",
        -loss,
        threshold=-float(loss[scores.labels].mean()),
    )


def _by_calibrated_loss(scores: MembershipScores) -> Guesses:
    """Against what others, who are known not to be members, have."""
    judged, reference = scores.is_judged, scores.is_reference
    usual = usual_losses(
        scores.signals.loss[reference],
        [scores.intents[i] for i in np.flatnonzero(reference)],
        [scores.intents[i] for i in np.flatnonzero(judged)],
    )
    return Guesses(
        "loss calibrated by intent",
        "loss below what utterances of the same intent, known not to be members, have",
        usual - scores.signals.loss[judged],
        threshold=0.0,
    )


def _by_other_signals(scores: MembershipScores) -> List[Guesses]:
    judged, signals = scores.is_judged, scores.signals
    entropy = signals.intent_modified_entropy + signals.slot_modified_entropy  # (all,)
    margin = np.minimum(signals.intent_margin, 1e6) + np.minimum(signals.slot_margin, 1e6)  # (all,)
    kinds = (
        ("loss of the intent", "low cross entropy of the true intent", -signals.intent_loss),
        ("loss of the slots", "low negative log-likelihood of the true tags", -signals.slot_loss),
        (
            "modified entropy",
            "a sure and right intent and sure and right tags (Song and Mittal)",
            -entropy,
        ),
        ("margin", "how far the true labels lie above the best others", margin),
    )
    return [Guesses(name, says, values[judged]) for name, says, values in kinds]


def _by_words(unknown: np.ndarray) -> Guesses:
    """What a word list that was read off the training part gives away without any model."""
    return Guesses(
        "words alone",
        "all its words are in the model's vocabulary, which was read off the training part; no "
        "output of the model is looked at",
        -unknown.astype(np.float64),
        threshold=-0.5,
    )


def usual_losses(losses: np.ndarray, intents: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """The mean loss of each wanted intent among reference utterances, drawn to the overall mean.

    Args:
        losses, intents: of the reference utterances.
        wanted: the intents of those to be judged.

    Shapes: losses (R,) → (U,).
    Edge cases: an intent without a reference has the overall mean.

    Example:
        >>> usual_losses(np.array([1.0, 3.0]), ["a", "b"], ["c"])
        array([2.])
    """
    overall = float(losses.mean())
    names = sorted(set(intents))
    place = {name: i for i, name in enumerate(names)}
    index = np.array([place[name] for name in intents])
    counts = np.bincount(index, minlength=len(names))
    sums = np.bincount(index, losses, minlength=len(names))
    means = (sums + PRIOR_WEIGHT * overall) / (counts + PRIOR_WEIGHT)
    return np.array([means[place[name]] if name in place else overall for name in wanted])
