"""Bounds from error counts, against golden vectors, enumeration and simulation."""

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
