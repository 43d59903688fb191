"""Lower bound on the ε of one training run from guesses about its canaries."""

from __future__ import annotations

import math
from typing import NamedTuple, Sequence, Union

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

LARGEST_EPSILON = 700.0  # e^ε is still a double
FRACTIONS = (0.05, 0.2, 0.5, 1.0)  # of the canaries that are guessed; fixed before the run


def one_run_p_value(
    *, canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Return a bound on the probability of `correct` right guesses under (ε, δ) privacy.

    Args:
        canaries: m, each included by its own fair coin.
        guesses: r ≤ m, the number of coins that were guessed.
        correct: v ≤ r, the number of right guesses.
        epsilon: of the claim, for the insertion (or the replacement) of one canary.
        delta: of the claim.

    Guarantee:
        Rests on two assumptions only: the coins are fair and independent, and training, as a map
        from all coins to what the guesser sees, is (ε, δ) private for the turn of any one coin.
        How it is private does not matter: neither the sampler, nor further releases (α), nor how
        z₀ or the end of training was calculated without the data. The guesser may know everything
        except the coins and what the claim takes as secret, such as the draws of Poisson sampling.

    Source: Steinke, Nasr and Jagielski (2023), "Privacy Auditing with One (1) Training Run",
    Theorem 5.2 and appendix D: P[W ≥ v] + 2 m δ max_i P[v − i ≤ W < v] / i,
    W ~ Binomial(r, 1 / (1 + e^−ε)).

    Example:
        >>> one_run_p_value(canaries=2, guesses=2, correct=2, epsilon=0.0, delta=0.0)
        0.25
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(f"{correct} right of {guesses} guesses about {canaries} canaries")
    probability = 1 / (1 + math.exp(-epsilon))
    p_value = float(binom.sf(correct - 1, guesses, probability))
    if delta > 0 and correct > 0:
        below = np.arange(1, correct + 1)  # i
        sums = np.cumsum(binom.pmf(correct - below, guesses, probability))  # P[v − i ≤ W < v]
        p_value += 2 * canaries * delta * float((sums / below).max())
    return min(p_value, 1.0)


def one_run_epsilon(
    *, canaries: int, guesses: int, correct: int, delta: float, significance: float
) -> float:
    """Return a lower bound on ε: the smallest ε whose p-value reaches the significance.

    It holds with probability 1 − significance; 0 where nothing is shown.

    Edge cases: at most about ln(guesses), and less with a δ that is large beside 1 / canaries.
    """

    seen = {"canaries": canaries, "guesses": guesses, "correct": correct}

    def excess(epsilon: float) -> float:
        return one_run_p_value(**seen, epsilon=epsilon, delta=delta) - significance

    if excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0:
        high *= 2
        if high > LARGEST_EPSILON:
            return LARGEST_EPSILON
    return float(brentq(excess, 0.0, high, xtol=1e-12))


class CoinGuesses(NamedTuple):
    """Best of several numbers of guesses, half of them "in" and half "out"."""

    guesses: int
    correct: int
    epsilon: float


def guess_coins(
    scores: Union[Sequence[float], np.ndarray],
    is_member: Sequence[bool],
    *,
    delta: float,
    significance: float,
) -> CoinGuesses:
    """Guess "in" for the highest scores and "out" for the lowest, and bound ε.

    Edge cases: a score that is not finite counts as 0; equal scores are guessed in the order
    given, which does not depend on the coins.
    """
    values = np.nan_to_num(np.asarray(scores, np.float64), nan=0.0, posinf=0.0, neginf=0.0)  # (m,)
    members = np.asarray(is_member, bool)  # (m,)
    order = np.argsort(values, kind="stable")  # lowest first
    found = []
    for fraction in FRACTIONS:
        half = max(1, int(fraction * len(values) / 2))
        correct = int((~members[order[:half]]).sum() + members[order[-half:]].sum())
        bound = one_run_epsilon(
            canaries=len(values),
            guesses=2 * half,
            correct=correct,
            delta=delta,
            significance=significance / len(FRACTIONS),
        )
        found.append(CoinGuesses(2 * half, correct, bound))
    return max(found, key=lambda one: (one.epsilon, one.correct / one.guesses))
