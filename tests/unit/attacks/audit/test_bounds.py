"""Bounds from error counts and from guesses: golden vectors, enumeration and known mechanisms."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from support.golden_vectors import cases

from edp_mx.attacks.audit.bounds import (
    ErrorCounts,
    epsilon_from_errors,
    epsilon_of_mu,
    mu_from_errors,
    upper_rate,
)
from edp_mx.attacks.audit.guessing import guess_coins, one_run_epsilon, one_run_p_value


@pytest.mark.parametrize("case", cases("eps_lower_tpr_fpr"), ids=lambda case: case["id"])
def test_golden_bounds(case):
    given, expected = case["inputs"], case["expected"]
    counts = ErrorCounts(given["fp"], given["n_neg"], given["n_pos"] - given["tp"], given["n_pos"])
    significance = given["significance"]
    epsilon = epsilon_from_errors(counts, delta=given["delta"], significance=significance)
    assert epsilon == pytest.approx(expected["eps"], rel=case["rtol"])
    mu = mu_from_errors(counts, significance=significance)
    assert mu == pytest.approx(expected["mu"], rel=case["rtol"])


@pytest.mark.parametrize("trials", [1, 7, 20])
@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 0.9, 1.0])
def test_the_upper_bound_is_too_small_as_seldom_as_it_says(trials, rate):
    """By enumeration of all counts; below 1, the tail at a bound is the significance."""
    bounds = [upper_rate(k, trials, significance=0.05) for k in range(trials + 1)]
    missed = sum(binom.pmf(k, trials, rate) for k, bound in enumerate(bounds) if bound < rate)
    assert missed <= 0.05
    tails = [binom.cdf(k, trials, bound) for k, bound in enumerate(bounds[:-1])]
    assert tails == pytest.approx([0.05] * trials) and bounds[-1] == 1


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 3.0])
def test_the_bound_on_mu_is_seldom_above_the_true_one_and_near_it(mu, generator):
    # 400 attacks on a Gaussian pair at ±μ/2, each of 1,000 draws; 95 % must hold
    errors = generator.binomial(1000, ndtr(-mu / 2), size=(400, 2))
    bounds = np.array(
        [
            mu_from_errors(ErrorCounts(fp, 1000, fn, 1000), significance=0.05)
            for fp, fn in errors.tolist()
        ]
    )
    assert (bounds > mu).mean() <= 0.05
    assert np.median(bounds) > 0.85 * mu - 0.16


def test_nothing_is_shown_by_a_guess_or_by_an_attack_that_errs_always():
    for wrong in (500, 1000):
        counts = ErrorCounts(wrong, 1000, wrong, 1000)
        assert mu_from_errors(counts, significance=0.05) == 0
        assert epsilon_from_errors(counts, delta=1e-5, significance=0.05) == 0


def test_epsilon_of_mu_is_the_gaussian_trade_off():
    # δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)
    for mu in (0.3, 1.0, 2.83):
        epsilon = epsilon_of_mu(mu, delta=1e-5)
        delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-5, rel=1e-6)
    assert epsilon_of_mu(0.0, delta=1e-5) == 0


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
def test_golden_one_run_bounds(case):
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
