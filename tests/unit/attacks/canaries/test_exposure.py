"""Exposure by hand, by closed forms, and by numbers that are known."""

import math

import numpy as np
import pytest
from scipy.stats import norm, skewnorm
from support.refusals import one_sentence

from edp_mx.attacks.canaries.exposure import BY_CHANCE, exposure_of, log_below


def test_the_rank_by_hand():
    others = np.array([0.5, 0.1, 0.9, 0.3, 0.3, 0.7, 0.8])
    assert exposure_of(0.05, others).rank == 1 and exposure_of(0.05, others).by_rank == 3.0
    assert exposure_of(0.2, others).rank == 2 and exposure_of(0.2, others).by_rank == 2.0
    assert exposure_of(0.3, others).rank == 3.0  # ties count half: 1 + 1 + 2/2
    assert exposure_of(1.0, others).by_rank == 0.0


def test_a_secret_that_was_not_trained_on_has_what_chance_gives(generator):
    losses = generator.permutation(9) + 1.0  # fewer than are fitted
    found = [exposure_of(float(losses[i]), np.delete(losses, i)).by_rank for i in range(9)]
    assert np.mean(found) == pytest.approx(math.log2(9) - math.log2(math.factorial(9)) / 9)
    many = math.log2(1e9) - (math.lgamma(1e9 + 1) / math.log(2)) / 1e9  # by Stirling: log2 e
    assert many == pytest.approx(BY_CHANCE, abs=1e-6)


@pytest.mark.parametrize("deviations", [-1.0, -3.0, -6.0])
def test_the_fit_goes_beyond_what_ranks_show(generator, deviations):
    others = np.exp(generator.normal(-2.0, 0.5, 20_000))
    secret = math.exp(-2.0 + 0.5 * deviations)
    exposure = exposure_of(secret, others)
    assert exposure.by_fit == pytest.approx(-norm.logcdf(deviations) / math.log(2), rel=0.15)
    assert exposure.by_rank <= math.log2(20_001)


def test_the_fit_agrees_with_the_rank_where_there_are_ranks(generator):
    others = np.exp(skewnorm.rvs(-3.0, size=5000, random_state=generator))
    for quantile in (0.02, 0.2, 0.6):
        exposure = exposure_of(float(np.quantile(others, quantile)), others)
        assert exposure.by_fit == pytest.approx(exposure.by_rank, abs=0.3)


@pytest.mark.parametrize("value", [-40.0, -12.0, -5.5, -2.0, 1.5])
def test_tails_of_a_gaussian_are_exact(value):
    assert log_below(value, 0.0) == pytest.approx(norm.logcdf(value), rel=1e-6)


@pytest.mark.parametrize("shape", [-4.0, -1.0, 2.0, 9.0])
def test_tails_of_a_skew_normal_are_those_of_the_integral(shape):
    mpmath = pytest.importorskip("mpmath")
    for value in (-6.0, -2.0, 0.5):
        steps = [value - end for end in (12, 3, 1, 0.1, 0.01, 0)]
        exact = mpmath.quad(lambda x: 2 * mpmath.npdf(x) * mpmath.ncdf(shape * x), steps)
        assert log_below(value, shape) == pytest.approx(float(mpmath.log(exact)), rel=1e-4)


def test_a_secret_beyond_the_edge_of_half_a_gaussian_has_a_finite_exposure(generator):
    edge = np.exp(np.abs(generator.normal(size=200)))  # the fit's shape has no end
    exposure = exposure_of(math.exp(-1.0), edge)
    logs = np.log(edge)
    expected = -norm.logcdf((-1.0 - logs.mean()) / logs.std()) / math.log(2)
    assert exposure.by_fit == pytest.approx(expected)


def test_equal_losses_have_a_rank_and_no_fit():
    exposure = exposure_of(0.5, np.full(100, 0.5))
    assert exposure.rank == 51.0 and exposure.by_fit is None
    assert exposure_of(0.0, np.exp(np.linspace(-3, 0, 100))).by_fit > 50


def test_a_model_that_diverged_is_refused():
    for loss, others in ((math.nan, [1.0]), (1.0, [math.inf]), (1.0, [])):
        one_sentence("finite losses", exposure_of, loss, np.array(others))
