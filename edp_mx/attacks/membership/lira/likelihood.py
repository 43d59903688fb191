"""LiRA: likelihood ratio of outputs under models trained with and without an utterance."""

from __future__ import annotations

from typing import List, NamedTuple

import numpy as np

from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.errors import UserError
from edp_mx.runs.attack_files import ALIGNED

LEAST_SHADOWS = 4  # two with and two without an utterance, for a standard deviation
SHARED_WEIGHT = 8.0  # of the variance of all utterances, in degrees of freedom of one's own
LEAST_STDDEV = 1e-6


class Worlds(NamedTuple):
    """Log-odds of each utterance (U,) by shadow models with it (in) and without it (out)."""

    mean_in: np.ndarray
    stddev_in: np.ndarray
    mean_out: np.ndarray
    stddev_out: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Between the means with and without each utterance, (U,)."""
        return (self.mean_in + self.mean_out) / 2


def check_shadow_count(shadows: int) -> None:
    """Refuse too few shadows."""
    if shadows < LEAST_SHADOWS:
        raise UserError(f"--lira is {shadows}; it must be {LEAST_SHADOWS} or more (16 is usual)")


def draw_halves(size: int, shadows: int, *, seed: int) -> np.ndarray:
    """Draw which shadow trains on which utterance, (size, shadows): each is in half of them."""
    check_shadow_count(shadows)
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x114A]))
    ranks = generator.random((size, shadows)).argsort(axis=1).argsort(axis=1)
    return ranks < shadows // 2


def draw_further(size: int, shadows: int, *, share: float, seed: int) -> np.ndarray:
    """Draw which shadow trains on utterances that are not judged, each with probability `share`."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x07E5]))
    return generator.random((size, shadows)) < share


def worlds_of(shadows: np.ndarray, is_in: np.ndarray) -> Worlds:
    """Return mean and standard deviation of the log-odds of each utterance with and without it.

    A variance is the mean of the utterance's own, which few shadows know badly, weighted by its
    degrees of freedom, and of all utterances' together, weighted by `SHARED_WEIGHT`. The sides are
    not pooled together, since the outputs for utterances that were not trained on vary more.

    Shapes: shadows, the log-odds by shadow model, and is_in (U, K).

    Source: Carlini et al. 2022, section 4.1; the mean of variances is Smyth 2004, "Linear Models
    and Empirical Bayes Methods", section 3, with a given weight.
    """
    if not np.isfinite(shadows).all():
        raise UserError("a shadow model has diverged: its scores are not finite")
    found = []
    for side in (is_in, ~is_in):
        count = side.sum(axis=1)  # (U,)
        if count.min() < 2:
            raise UserError("each utterance needs two shadow models with it and two without")
        mean = np.where(side, shadows, 0.0).sum(axis=1) / count  # (U,)
        squares = np.where(side, (shadows - mean[:, None]) ** 2, 0.0).sum(axis=1)  # (U,)
        shared = squares.sum() / (count - 1.0).sum()
        variance = (SHARED_WEIGHT * shared + squares) / (SHARED_WEIGHT + count - 1.0)  # (U,)
        found += [mean, np.maximum(np.sqrt(variance), LEAST_STDDEV)]
    return Worlds(*found)


def online_scores(target: np.ndarray, worlds: Worlds) -> np.ndarray:
    """Return the log likelihood ratio in : out of two Gaussians; above 0 it says "member".

    The target are the log-odds by the attacked model, (U,).

    Source: Carlini et al. 2022, "Membership Inference Attacks From First Principles", algorithm 1.

    Example:
        >>> worlds = Worlds(*(np.array([x]) for x in (1.0, 1.0, -1.0, 1.0)))
        >>> online_scores(np.array([0.5]), worlds)  # (1.5² − 0.5²) / 2
        array([1.])
    """
    return _log_density(target, worlds.mean_in, worlds.stddev_in) - _log_density(
        target, worlds.mean_out, worlds.stddev_out
    )


def linear_scores(target: np.ndarray, worlds: Worlds) -> np.ndarray:
    """Return the log ratio of two Gaussians with one variance each; above 0 it says "member".

    The variance of an utterance is the mean of those with and without it.

    Where the standard deviations differ it is weaker than `online_scores`. But it never takes an
    output that is more certain than those of all shadows for a non-member's.

    Example:
        >>> worlds = Worlds(*(np.array([x]) for x in (1.0, 0.6, -1.0, 0.8)))
        >>> linear_scores(np.array([0.5]), worlds)  # 0.5 · 2 / 0.5
        array([2.])
    """
    variance = (worlds.stddev_in**2 + worlds.stddev_out**2) / 2  # (U,)
    return (target - worlds.middle) * (worlds.mean_in - worlds.mean_out) / variance


def aligned(target: np.ndarray, worlds: Worlds) -> np.ndarray:
    """Return the log-odds that a run would have if it were as certain as its shadows are, (U,).

    A run that was trained otherwise, as by noisy gradients, is less certain than they are. What it
    gives to utterances of which they are equally certain follows by isotonic regression, which
    knows nothing of who is a member; an utterance keeps its distance from that.
    """
    from sklearn.isotonic import IsotonicRegression  # a second's import, for no shadow model

    usual = IsotonicRegression().fit_transform(worlds.middle, target)  # (U,)
    return worlds.middle + target - usual


def offline_scores(target: np.ndarray, worlds: Worlds) -> np.ndarray:
    """Return how many standard deviations an output lies above the mean without the utterance.

    It needs only shadows that were trained without the utterance. It ranks as one minus the p-value
    of the one-sided test does, without running out of digits.

    Source: Carlini et al. 2022, section 4.2 (equation 4).
    """
    return (target - worlds.mean_out) / worlds.stddev_out


def lira_attacks(
    scores: MembershipScores, log_odds: np.ndarray, losses: np.ndarray, is_in: np.ndarray
) -> List[Guesses]:
    """Return the guesses of LiRA online (two variants) and offline, and of the calibrated loss.

    Shapes: log_odds, losses (of the judged utterances by shadow model) and is_in (U, K).

    Source: the last is Watson et al. 2022, "On the Importance of Difficulty Calibration".
    """
    worlds = worlds_of(log_odds, is_in)
    target = scores.judged_signals.log_odds  # (U,)
    usual = np.where(is_in, 0.0, losses).sum(axis=1) / (~is_in).sum(axis=1)  # (U,)
    return [
        Guesses(
            "LiRA online",
            "likelihood ratio of the log-odds, by shadows with and without the utterance",
            online_scores(target, worlds),
            threshold=0.0,
        ),
        Guesses(
            ALIGNED,
            "the same with one standard deviation, of log-odds as certain as those of the shadows",
            linear_scores(aligned(target, worlds), worlds),
            threshold=0.0,
        ),
        Guesses(
            "LiRA offline",
            "how far the log-odds lie above those of shadows without the utterance",
            offline_scores(target, worlds),
        ),
        Guesses(
            "loss calibrated by shadows",
            "loss below the mean loss of shadows without the utterance (Watson et al.)",
            usual - scores.judged_signals.loss,
            threshold=0.0,
        ),
    ]


def _log_density(values: np.ndarray, mean: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    return -0.5 * ((values - mean) / stddev) ** 2 - np.log(stddev)
