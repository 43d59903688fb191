"""What ε and μ permit an attacker, against the attacks themselves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm
from support.refusals import one_sentence

from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.tradeoff import (
    accuracy_gaussian,
    accuracy_within,
    tpr_gaussian,
    tpr_within,
)


def worst_pair(epsilon, delta):
    """The two distributions that every (ε, δ)-private pair can be made from."""
    share = (1 - delta) / (1 + math.exp(epsilon))
    with_it = np.array([delta, share * math.exp(epsilon), share, 0.0])
    return with_it, with_it[::-1]


def best_test(with_it, without, fpr):
    """The most powerful randomised test of four outcomes, as a linear programme."""
    found = linprog(-with_it, A_ub=[without], b_ub=[fpr], bounds=[(0, 1)] * 4)
    return -found.fun


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_from_epsilon_and_delta_it_is_what_the_worst_pair_permits(epsilon, delta):
    with_it, without = worst_pair(epsilon, delta)
    number = LogNumber(math.log(epsilon)) if epsilon else LogNumber(-math.inf)
    for fpr in (0.001, 0.01, 0.2, 0.7):
        expected = best_test(with_it, without, fpr)
        assert tpr_within(number, delta, fpr=fpr) == pytest.approx(expected, abs=1e-8)
    right = 0.5 * np.maximum(with_it, without).sum()
    assert accuracy_within(number, delta) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 1.0, 5.0])
def test_of_a_gaussian_it_is_the_likelihood_ratio_test(mu):
    log_rho = math.log(mu * mu / 2)
    for fpr in (0.001, 0.01, 0.3):
        threshold = norm.isf(fpr)
        assert tpr_gaussian(log_rho, fpr=fpr) == pytest.approx(norm.sf(threshold - mu), rel=1e-9)
    assert accuracy_gaussian(log_rho) == pytest.approx(norm.cdf(mu / 2), rel=1e-12)


@given(st.floats(-10, 10), st.sampled_from([1e-6, 1e-3, 0.1]), st.floats(1e-4, 0.99))
def test_a_gaussian_stays_below_what_its_own_epsilon_permits(log_rho, delta, fpr):
    from edp_mx.dp.accounting.zcdp import log_epsilon_exact

    epsilon = LogNumber(log_epsilon_exact(log_rho, delta))
    assert tpr_gaussian(log_rho, fpr=fpr) <= tpr_within(epsilon, delta, fpr=fpr) + 1e-9
    assert accuracy_gaussian(log_rho) <= accuracy_within(epsilon, delta) + 1e-9


def test_nothing_and_everything():
    nothing, everything = LogNumber(-math.inf), LogNumber(math.inf)
    assert tpr_within(nothing, 0.0, fpr=0.01) == pytest.approx(0.01)
    assert accuracy_within(nothing, 0.0) == 0.5
    assert tpr_gaussian(-math.inf, fpr=0.01) == pytest.approx(0.01)
    for huge in (everything, LogNumber(1000.0)):
        assert tpr_within(huge, 1e-5, fpr=0.01) == accuracy_within(huge, 1e-5) == 1
    assert tpr_gaussian(2000.0, fpr=0.01) == accuracy_gaussian(2000.0) == 1


def test_what_is_no_probability_is_refused():
    for fpr in (0.0, math.nan):
        one_sentence("fpr", tpr_gaussian, 0.0, fpr=fpr)
    one_sentence("delta", accuracy_within, LogNumber(0.0), math.nan)
