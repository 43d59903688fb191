"""zCDP and its conversions: golden values, quadrature, order, monotony, the ends of the range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from support.golden_vectors import cases
from support.refusals import one_sentence

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.zcdp import (
    CONVERSIONS,
    log_epsilon_exact,
    log_epsilon_renyi,
    log_epsilon_simple,
    log_rho_of,
    yu_rs_of_steps,
)

DELTAS = st.floats(-12, 0).map(lambda exponent: 10**exponent)
LOG_RHOS = st.floats(-60, 1000)
EVERY_CONVERSION = pytest.mark.parametrize("conversion", CONVERSIONS.values(), ids=CONVERSIONS)


def epsilon(log_epsilon):
    """The plain value."""
    return math.exp(log_epsilon)


def rho_of(case):
    inputs = case["inputs"]
    decay = Decay(inputs["decay"], inputs["tau"])
    assert inputs["t0"] == 0
    return log_rho(inputs["z0"] * decay.factor(t) for t in range(inputs["epochs"]))


def log_rho(multipliers):
    return log_rho_of(Event("shuffle", z) for z in multipliers)


@pytest.mark.parametrize("case", cases("zcdp_rf"), ids=lambda case: case["id"])
def test_golden_shuffled_epochs(case):
    log, delta, expected = rho_of(case), case["inputs"]["delta"], case["expected"]
    found = {
        "rho": math.exp(log),
        "log10_rho": log / math.log(10),
        "eps_simple": epsilon(log_epsilon_simple(log, delta)),
        "eps_renyi": epsilon(log_epsilon_renyi(log, delta)),
        "eps_exact": epsilon(log_epsilon_exact(log, delta)),
        "log10_eps_simple": log_epsilon_simple(log, delta) / math.log(10),
    }
    assert found == pytest.approx(expected, rel=case["rtol"])


@pytest.mark.parametrize("case", cases("log_rho_rf"), ids=lambda case: case["id"])
def test_golden_rho_beyond_a_double(case):
    assert rho_of(case) == pytest.approx(case["expected"]["log_rho"], rel=case["rtol"])


@pytest.mark.parametrize("case", cases("yu_rs_heuristic"), ids=lambda case: case["id"])
def test_golden_heuristic(case):
    inputs, expected = case["inputs"], case["expected"]
    steps = [(inputs["q"], z, inputs["steps_per_epoch"]) for z in inputs["multipliers"]]
    found = yu_rs_of_steps(steps, delta=inputs["delta"], largest_order=inputs["cap"])
    names = {"rho": "rho", "largest_order": "u_alpha", "epsilon": "eps"}
    assert found == pytest.approx({k: expected[v] for k, v in names.items()}, rel=case["rtol"])


@EVERY_CONVERSION
@given(log=LOG_RHOS, more=st.floats(0.001, 5), delta=DELTAS, factor=st.floats(0.01, 0.99))
def test_epsilon_grows_with_rho_and_one_over_delta(conversion, log, more, delta, factor):
    least = conversion(log, delta) - 1e-12
    assert least <= conversion(log + more, delta)
    assert least <= conversion(log, factor * delta)


@pytest.mark.parametrize("mu", [1e-3, 0.03, 0.5, 0.999, 1.001, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 5e-4, 0.1])
def test_exact_epsilon_gives_delta_by_quadrature(mu, delta):
    """δ = ∫ max(0, p − e^ε q) for the worst pair N(μ, 1), N(0, 1)."""
    log = log_epsilon_exact(math.log(mu * mu / 2), delta)
    if log == -math.inf:
        assert norm.cdf(mu / 2) - norm.cdf(-mu / 2) <= delta
        return
    # p > e^ε q beyond x = ε/μ + μ/2; written as an excess over there, so that nothing cancels
    edge = epsilon(log) / mu + mu / 2
    value, _ = quad(
        lambda y: -math.expm1(-mu * y) * norm.pdf(edge + y - mu), 0, 40, epsabs=0, limit=500
    )
    assert value == pytest.approx(delta, rel=1e-7)


@pytest.mark.parametrize("rho", [1e-4, 0.3, 5.0, 200.0])
@pytest.mark.parametrize("delta", [1e-10, 5e-4, 0.2])
def test_renyi_epsilon_is_the_least_over_orders(rho, delta):
    orders = 1 + np.logspace(-8, 8, 400_001)
    by_order = rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    found = epsilon(log_epsilon_renyi(math.log(rho), delta))
    assert found == pytest.approx(max(0.0, by_order.min()), rel=1e-7, abs=1e-12)


@EVERY_CONVERSION
@pytest.mark.parametrize("delta", [1e-12, 0.5, 0.999])
def test_the_ends_of_the_range(conversion, delta):
    assert conversion(-math.inf, delta) == -math.inf  # ρ = 0: ε = 0
    assert conversion(math.inf, delta) == math.inf  # no noise
    for log in (900.0, 2000.0, 1e5):  # up to 10^43429: ε → ρ
        assert conversion(log, delta) == pytest.approx(log, rel=1e-12)
    for log in (-1e5, -800.0):
        assert conversion(log, delta) <= log_epsilon_simple(log, delta)


@EVERY_CONVERSION
def test_delta_one_permits_everything(conversion):
    allowed = {log_epsilon_simple: 0.0}.get(conversion, -math.inf)  # simple: ε = ρ
    assert conversion(0.0, 1.0) == allowed


def test_no_epochs_cost_nothing_and_no_noise_everything():
    assert log_rho([]) == -math.inf
    assert log_rho([1.0, 0.0]) == math.inf


@EVERY_CONVERSION
@pytest.mark.parametrize("delta", [0.0, -0.1, 1.1, math.nan])
def test_impossible_deltas_are_refused(conversion, delta):
    one_sentence("delta", conversion, 0.0, delta)


def test_heuristic_admits_where_it_does_not_apply():
    found = yu_rs_of_steps([(0.01, 300.0, 100)], delta=1e-5)
    assert found["epsilon"] == math.inf  # q z ≥ 1
    low = yu_rs_of_steps([(0.01, 0.4, 100)], delta=1e-9)
    order = 0.16 * math.log(250) + 1
    expected = low["rho"] * order + 9 * math.log(10) / (order - 1)
    assert low["epsilon"] == pytest.approx(expected, rel=1e-12)
