"""The central limit: golden values, its own limit, and that it is no bound."""

import math

import pytest
from support.golden_vectors import cases

from edp_mx.accounting.accountants import ACCOUNTANTS
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.gdp import log_epsilon_gdp_clt, log_mu_gdp_clt
from edp_mx.accounting.pld.interval import epsilon_poisson_pld

GIVEN = [case for case in cases("poisson_compose") if "eps_gdp_clt" in case["expected"]]


def composition(*steps):
    return Composition("zero_out", [Event("poisson", z, count, q) for q, z, count in steps])


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: case["id"])
def test_golden_values(case):
    log = log_epsilon_gdp_clt(composition(*case["inputs"]["steps"]), case["inputs"]["delta"])
    assert math.exp(log) == pytest.approx(case["expected"]["eps_gdp_clt"], rel=case["rtol"])


def test_it_is_below_what_holds_and_says_so():
    steps = composition((0.01, 1.1, 1000))
    assert not ACCOUNTANTS["gdp_clt"].is_bound
    assert math.exp(log_epsilon_gdp_clt(steps, 5e-4)) < epsilon_poisson_pld(steps, delta=5e-4).lower


def test_many_small_steps_come_to_it():
    """q √T kept, T up: the true ε and the limit meet."""
    gaps = []
    for steps in (100, 10_000):
        small = composition((0.5 / math.sqrt(steps), 2.0, steps))
        true = epsilon_poisson_pld(small, delta=1e-3).estimate
        gaps.append(abs(true / math.exp(log_epsilon_gdp_clt(small, 1e-3)) - 1))
    assert gaps[1] < 0.2 * gaps[0] < 0.02


def test_the_ends():
    assert log_mu_gdp_clt(composition()) == -math.inf
    assert log_epsilon_gdp_clt(composition(), 1e-5) == -math.inf
    assert log_mu_gdp_clt(composition((0.1, 0.0, 1))) == math.inf
    assert log_epsilon_gdp_clt(composition((0.1, 0.0, 1)), 1e-5) == math.inf
    huge = log_mu_gdp_clt(composition((0.1, 1e-6, 1)))  # μ² = q² e^(10^12)
    assert huge == pytest.approx(0.5e12, rel=1e-9)
    assert log_epsilon_gdp_clt(composition((0.1, 1e-6, 1)), 1e-5) == pytest.approx(1e12, rel=1e-9)
