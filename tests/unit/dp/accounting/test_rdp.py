"""Rényi divergences and the central limit: golden values, quadrature, limits and the ends."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from support.golden_vectors import cases

from edp_mx.dp.accounting.accountants import ACCOUNTANTS
from edp_mx.dp.accounting.choices import NEIGHBOURS
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.pld.interval import epsilon_poisson_pld
from edp_mx.dp.accounting.rdp import epsilon_from_rdp, epsilon_poisson_rdp, rdp_sampled_gaussian
from edp_mx.dp.accounting.zcdp import log_epsilon_gdp_clt, log_epsilon_renyi, log_mu_gdp_clt
from edp_mx.errors import UserError


def rdp(q, z, *orders):
    return rdp_sampled_gaussian(sample_rate=q, noise_multiplier=z, orders=orders)


def composition(*steps, neighbours="zero_out"):
    return Composition(neighbours, [Event("poisson", z, count, q) for q, z, count in steps])


@pytest.mark.parametrize("case", cases("rdp_sampled_gaussian"), ids=lambda case: case["id"])
def test_golden_divergences(case):
    inputs = case["inputs"]
    found = rdp(inputs["q"], inputs["z_eff"], inputs["order"])[0]
    assert found == pytest.approx(case["expected"]["rdp"], rel=case["rtol"])


@pytest.mark.parametrize("case", cases("poisson_compose"), ids=lambda case: case["id"])
def test_golden_compositions(case):
    inputs, expected = case["inputs"], case["expected"]
    spent = sum(count * rdp(q, z, *inputs["orders"]) for q, z, count in inputs["steps"])
    epsilon, order = epsilon_from_rdp(spent, orders=inputs["orders"], delta=inputs["delta"])
    assert epsilon == pytest.approx(expected["eps_rdp"], rel=case["rtol"])
    assert order == expected["rdp_order"]
    finer = epsilon_poisson_rdp(composition(*inputs["steps"]), delta=inputs["delta"])
    assert expected.get("eps_pld", 0) < finer <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("q, z", [(0.1, 4.0), (0.01, 0.6), (0.5, 1.0), (0.99, 2.0), (0.3, 0.4)])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.5, 7.3])
def test_fractional_orders_by_quadrature(q, z, order):
    centre = 0.5 + z * z * math.log((1 - q) / q)

    def integrand(x):
        log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (x - 0.5) / z**2)
        return norm.pdf(x, 0, z) * math.expm1(order * log_ratio)

    points = [p for p in (0, 1, order, centre) if -12 * z < p < order + 12 * z]
    moment, _ = quad(integrand, -12 * z, order + 12 * z, points=points, limit=2000, epsabs=1e-14)
    found = rdp(q, z, order)[0]
    assert found == pytest.approx(math.log1p(moment) / (order - 1), rel=1e-7, abs=1e-11)


@pytest.mark.parametrize(
    "q, z", [(0.01, 1.0), (0.01, 1e-6), (1e-4, 50.0), (0.5, 0.01), (0.999, 3.0), (0.3, 1e-3)]
)
def test_fractional_orders_join_whole_ones(q, z):
    """A binomial sum at 2, 3, 17; an integral close by."""
    whole, close = rdp(q, z, 2.0, 3.0, 17.0), rdp(q, z, *(a * (1 + 1e-12) for a in (2, 3, 17)))
    np.testing.assert_allclose(close, whole, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("z", [1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("delta", [1e-12, 5e-4])
def test_full_batches_are_the_closed_form(z, delta):
    exact = math.exp(log_epsilon_renyi(math.log(10 / (2 * z * z)), delta))
    assert epsilon_poisson_rdp(composition((1.0, z, 10)), delta=delta) <= exact * (1 + 1e-12)
    assert rdp(1.0, z, 3.0)[0] == pytest.approx(3 / (2 * z * z))


@pytest.mark.parametrize("z", [1e-6, 1e-3, 0.03])
def test_large_rho_is_not_left_to_the_grid(z):
    steps = composition((0.5, z, 100))
    whole = math.exp(log_epsilon_renyi(math.log(100 / (2 * z * z)), 1e-5))
    assert 0.1 * whole < epsilon_poisson_rdp(steps, delta=1e-5) <= whole


def test_the_ends():
    assert epsilon_poisson_rdp(composition(), delta=1e-5) == 0.0
    assert epsilon_poisson_rdp(composition((0.1, 1.0, 0)), delta=1e-5) == 0.0
    assert epsilon_poisson_rdp(composition((0.1, 0.0, 1)), delta=1e-5) == math.inf
    assert epsilon_poisson_rdp(composition((1e-9, 100.0, 1)), delta=0.5) == 0.0
    assert math.isfinite(epsilon_poisson_rdp(composition((0.1, 1e-6, 10_000)), delta=1e-12))


def test_what_it_does_not_speak_of_is_refused():
    for neighbours in ("replace_one", "replace_in_mean"):
        with pytest.raises(UserError, match="poisson_pld"):
            epsilon_poisson_rdp(composition((0.1, 1.0, 1), neighbours=neighbours), delta=1e-5)
    for arguments in ((0.1, 1.0, 1.0), (0.1, 1.0, math.nan), (0.1, math.nan, 2), (math.nan, 1, 2)):
        with pytest.raises(UserError):
            rdp(*arguments)
    for delta in (0.0, math.nan):
        with pytest.raises(UserError, match="delta"):
            epsilon_poisson_rdp(composition((0.1, 1.0, 1)), delta=delta)


@pytest.mark.parametrize(
    "q, z, steps, delta",
    [
        (1e-4, 0.3, 20_000, 1e-9),
        (3.6e-5, 0.36, 50_940, 1.8e-10),
        (1.2e-4, 0.98, 131_900, 4e-7),
        (1.8e-3, 14.0, 21_090, 1e-12),
        (0.3, 2.0, 100, 1e-5),
    ],
)
def test_the_orders_lose_less_than_a_hundredth(q, z, steps, delta):
    fine = np.concatenate([1 + 0.01 * np.arange(1, 3000), np.arange(31.0, 2000.0)])
    spent = steps * rdp(q, z, *fine)
    best, _ = epsilon_from_rdp(spent, orders=fine, delta=delta)
    found = epsilon_poisson_rdp(composition((q, z, steps)), delta=delta)
    assert 0.9 * best < found < 1.01 * best


GIVEN = [case for case in cases("poisson_compose") if "eps_gdp_clt" in case["expected"]]


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: case["id"])
def test_golden_values_of_the_limit(case):
    log = log_epsilon_gdp_clt(composition(*case["inputs"]["steps"]), case["inputs"]["delta"])
    assert math.exp(log) == pytest.approx(case["expected"]["eps_gdp_clt"], rel=case["rtol"])


def test_it_is_below_what_holds_and_says_so():
    steps = composition((0.01, 1.1, 1000))
    assert not ACCOUNTANTS["gdp_clt"].is_bound
    assert math.exp(log_epsilon_gdp_clt(steps, 5e-4)) < epsilon_poisson_pld(steps, delta=5e-4).lower


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_many_small_steps_come_to_it(neighbours):
    """q √T kept, T up: the true ε and the limit meet, whoever the neighbours are."""
    gaps = []
    for steps in (100, 10_000):
        small = Composition(neighbours, [Event("poisson", 2.0, steps, 0.5 / math.sqrt(steps))])
        true = epsilon_poisson_pld(small, delta=1e-3).estimate
        gaps.append(abs(true / math.exp(log_epsilon_gdp_clt(small, 1e-3)) - 1))
    assert gaps[1] < 0.3 * gaps[0] < 0.02


@pytest.mark.parametrize("z", [1e160, 1e154, 1e9, 1.0001e4, 0.9999e4, 3.0, 0.2, 0.04, 0.0])
def test_the_limit_of_neighbours_in_one_ball_has_no_holes(z):
    """Between that of one record there or not, and that of two in opposite directions."""
    steps = [Event("poisson", z, 1, 0.5)]
    there, ball, opposite = (
        log_mu_gdp_clt(Composition(name, steps))
        for name in ("zero_out", "replace_in_mean", "replace_one")
    )
    assert there <= ball + 1e-12 and ball <= opposite
    if 1 < z < 1e150:
        s = mpmath.mpf(1) / z
        with mpmath.workdps(60):
            grown = mpmath.exp(s * s)
            true = mpmath.log(grown * mpmath.ncdf(1.5 * s) + 3 * mpmath.ncdf(-s / 2) - 2)
        assert 2 * ball + math.log(2) == pytest.approx(float(true), abs=1e-8)


def test_the_ends_of_the_limit():
    assert log_mu_gdp_clt(composition()) == -math.inf
    assert log_epsilon_gdp_clt(composition(), 1e-5) == -math.inf
    assert log_mu_gdp_clt(composition((0.1, 0.0, 1))) == math.inf
    assert log_epsilon_gdp_clt(composition((0.1, 0.0, 1)), 1e-5) == math.inf
    huge = log_mu_gdp_clt(composition((0.1, 1e-6, 1)))  # μ² = q² e^(10^12)
    assert huge == pytest.approx(0.5e12, rel=1e-9)
    assert log_epsilon_gdp_clt(composition((0.1, 1e-6, 1)), 1e-5) == pytest.approx(1e12, rel=1e-9)
