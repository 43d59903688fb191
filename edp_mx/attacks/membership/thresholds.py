"""Attacks that need no other model: a threshold on one number per utterance."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

import numpy as np

from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.runs.attack_files import WORDS_ALONE

PRIOR_WEIGHT = 5.0  # weight of the mean over all intents, in utterances


class Guesses(NamedTuple):
    """Scores (U,) of one attack, which works as it `says`: high means "is a member".

    Above its threshold, if it has one, the attack says "member".
    """

    name: str
    says: str
    scores: np.ndarray
    threshold: Optional[float] = None


def threshold_attacks(scores: MembershipScores) -> List[Guesses]:
    """Return the guesses by loss, calibrated loss, the other signals, and the words alone.

    Edge cases: of utterances without slots, all with one intent, as those of a language model, all
    outputs follow from the loss, which is the only guess then.

    Source: Yeom et al. 2018 (loss); Song and Mittal 2021 (modified entropy, thresholds by class);
    Watson et al. 2022 (calibration).
    """
    signals, loss = scores.judged_signals, scores.judged_signals.loss  # (U,)
    entropy = signals.intent_modified_entropy + signals.slot_modified_entropy  # (U,)
    margin = np.minimum(signals.intent_margin, 1e6) + np.minimum(signals.slot_margin, 1e6)  # (U,)
    of_slots = Guesses(
        "loss of the slots", "low negative log-likelihood of the true tags", -signals.slot_loss
    )
    of_loss = Guesses(
        "loss",
        "low training loss; the threshold is the mean loss of the members, which the attacker "
        "is assumed to know (Yeom et al.)",
        -loss,
        threshold=-float(loss[scores.labels].mean()),
    )
    if len(set(scores.intents)) == 1 and not signals.slot_loss.any():
        return [of_loss]
    found = [
        of_loss,
        Guesses("loss of the intent", "low cross entropy of the true intent", -signals.intent_loss),
        *([of_slots] if signals.slot_loss.any() else []),  # without slots there is one tag
        Guesses(
            "modified entropy",
            "right intent and tags with high certainty (Song and Mittal)",
            -entropy,
        ),
        Guesses("margin", "distance of the true labels to the best others", margin),
    ]
    if scores.is_reference.any():
        found.insert(1, _calibrated(scores))
    if scores.unknown_words is not None:
        words = Guesses(
            WORDS_ALONE,
            "all words are in the vocabulary, which comes from the training part; the outputs of "
            "the model are not used",
            -scores.unknown_words[scores.is_judged].astype(np.float64),
            threshold=-0.5,
        )
        found.append(words)
    return found


def _calibrated(scores: MembershipScores) -> Guesses:
    """The guesses by how far a loss is below the losses of known non-members."""
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


def usual_losses(losses: np.ndarray, intents: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Return the mean loss of each wanted intent, shrunk towards that of all reference utterances.

    Edge cases: an intent without a reference has the overall mean.

    Example:
        >>> usual_losses(np.array([1.0, 3.0]), ["a", "b"], ["c"])
        array([2.])
    """
    overall = float(losses.mean())
    names, index, counts = np.unique(intents, return_inverse=True, return_counts=True)
    sums = np.bincount(index, losses) + PRIOR_WEIGHT * overall
    means = dict(zip(names.tolist(), sums / (counts + PRIOR_WEIGHT)))
    return np.array([means.get(name, overall) for name in wanted])
