"""The one-run bound, against golden vectors, enumeration and a mechanism of known ε."""

import itertools
import math

import numpy as np
import pytest
from support.golden_vectors import cases

from edp_mx.attacks.audit.guessing import guess_coins, one_run_epsilon, one_run_p_value


def counts_of(given):
    """The arguments that golden vectors of both functions have."""
    counts = {"canaries": given["m"], "guesses": given["guesses"], "correct": given["correct"]}
    return {**counts, "delta": given["delta"]}


@pytest.mark.parametrize("case", cases("one_run_p_value"), ids=lambda case: case["id"])
def test_golden_p_values(case):
    given = case["inputs"]
    p_value = one_run_p_value(**counts_of(given), epsilon=given["eps"])
    assert p_value == pytest.approx(case["expected"]["p"], rel=case["rtol"])


@pytest.mark.parametrize("case", cases("eps_one_run"), ids=lambda case: case["id"])
def test_golden_bounds(case):
    given = case["inputs"]
    epsilon = one_run_epsilon(**counts_of(given), significance=given["significance"])
    assert epsilon == pytest.approx(case["expected"]["eps"], rel=case["rtol"])


def slow_p_value(canaries, guesses, correct, epsilon, delta):
    """The theorem as it stands, over all 2^r outcomes."""
    right = 1 / (1 + math.exp(-epsilon))
    mass = [0.0] * (guesses + 1)
    for outcome in itertools.product((0, 1), repeat=guesses):
        wins = sum(outcome)
        mass[wins] += right**wins * (1 - right) ** (guesses - wins)
    tail = sum(mass[correct:])
    worst = max(
        (sum(mass[max(correct - i, 0) : correct]) / i for i in range(1, correct + 1)), default=0
    )
    return min(1.0, tail + 2 * canaries * delta * worst)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_p_values_by_enumeration(epsilon, delta):
    for guesses in (1, 4, 8):
        for correct in range(guesses + 1):
            arguments = (12, guesses, correct, epsilon, delta)
            names = ("canaries", "guesses", "correct", "epsilon", "delta")
            assert one_run_p_value(**dict(zip(names, arguments))) == pytest.approx(
                slow_p_value(*arguments), rel=1e-10
            )


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_a_mechanism_of_known_epsilon_is_seldom_overstated(epsilon, generator):
    # randomised response on each coin is exactly (ε, 0) private
    right, bounds = 1 / (1 + math.exp(-epsilon)), []
    for _ in range(200):
        is_member = generator.random(300) < 0.5
        is_true = generator.random(300) < right
        scores = np.where(is_member == is_true, 1.0, -1.0) + 1e-3 * generator.random(300)
        bounds.append(guess_coins(scores, is_member, delta=0.0, significance=0.05).epsilon)
    assert np.mean(np.array(bounds) > epsilon) <= 0.09  # 0.05 and 2.6 standard errors
    assert np.median(bounds) > 0.6 * epsilon - 0.01


def test_the_best_guesses_count_and_bad_numbers_say_nothing():
    is_member = np.arange(400) % 2 == 0
    clear = np.where(is_member, 1.0, -1.0)
    found = guess_coins(clear, is_member, delta=0.0, significance=0.05)
    assert (found.guesses, found.correct) == (400, 400) and found.epsilon > 4
    # only the 20 highest and lowest say something: the small numbers of guesses find it
    faint = np.where(np.isin(np.arange(400), np.arange(20)), 100 * clear, 0.0)
    found = guess_coins(faint, is_member, delta=0.0, significance=0.05)
    assert (found.guesses, found.correct) == (20, 20) and found.epsilon > 1
    nothing = guess_coins(np.full(400, np.nan), is_member, delta=0.0, significance=0.05)
    assert nothing.epsilon == 0


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="guesses about"):
        one_run_p_value(canaries=5, guesses=6, correct=2, epsilon=1.0, delta=0.0)
