"""Attacks that need no other model: a threshold on one number per utterance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence

import numpy as np

from edp_mx.attacks.membership.scores import MembershipScores

PRIOR_WEIGHT = 5.0  # weight of the mean over all intents, in utterances


@dataclass(frozen=True, eq=False)
class Guesses:
    """Scores (U,) of one attack, which works as it `says`: high means "is a member".

    Above its threshold, if it has one, the attack says "member".
    """

    name: str
    says: str
    scores: np.ndarray
    threshold: Optional[float] = None


def threshold_attacks(scores: MembershipScores) -> List[Guesses]:
    """Return the guesses by loss, calibrated loss, the other signals, and the words alone.

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
    """Guess by the training loss."""
    loss = scores.judged_signals.loss  # (U,)
    return Guesses(
        "loss",
        "low training loss; the threshold is the mean loss of the members, which the attacker is "
        "assumed to know (Yeom et al.)",
        -loss,
        threshold=-float(loss[scores.labels].mean()),
    )


def _by_calibrated_loss(scores: MembershipScores) -> Guesses:
    """Guess by the loss in comparison with known non-members of the same intent."""
    judged, reference = scores.is_judged, scores.is_reference
    usual = usual_losses(
        scores.signals.loss[reference],
        [scores.intents[i] for i in np.flatnonzero(reference)],
        [scores.intents[i] for i in np.flatnonzero(judged)],
    )
    return Guesses(
        "loss calibrated by intent",
        "loss below the mean of known non-members with the same intent",
        usual - scores.judged_signals.loss,
        threshold=0.0,
    )


def _by_other_signals(scores: MembershipScores) -> List[Guesses]:
    """Guess by losses of the parts, modified entropy and margin."""
    signals = scores.judged_signals
    entropy = signals.intent_modified_entropy + signals.slot_modified_entropy  # (U,)
    margin = np.minimum(signals.intent_margin, 1e6) + np.minimum(signals.slot_margin, 1e6)  # (U,)
    kinds = (
        ("loss of the intent", "low cross entropy of the true intent", -signals.intent_loss),
        ("loss of the slots", "low negative log-likelihood of the true tags", -signals.slot_loss),
        (
            "modified entropy",
            "right intent and tags with high certainty (Song and Mittal)",
            -entropy,
        ),
        ("margin", "distance of the true labels to the best others", margin),
    )
    return [Guesses(name, says, values) for name, says, values in kinds]


def _by_words(unknown: np.ndarray) -> Guesses:
    """Guess by the words, if the vocabulary comes from the training part."""
    return Guesses(
        "words alone",
        "all words are in the vocabulary, which comes from the training part; the outputs of the "
        "model are not used",
        -unknown.astype(np.float64),
        threshold=-0.5,
    )


def usual_losses(losses: np.ndarray, intents: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Return the mean loss of each wanted intent, shrunk towards that of all reference utterances.

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
