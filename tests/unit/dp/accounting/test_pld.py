"""The Poisson accountant against golden values, closed forms, and an integral without a lattice."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_oracle import delta_of_one_step, epsilon_by_integral
from scipy.optimize import brentq
from support.gaussian import gaussian_delta
from support.golden_vectors import cases
from support.refusals import one_sentence
from threadpoolctl import threadpool_limits

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.pld import multiplier_groups
from edp_mx.dp.accounting.pld.interval import (
    DirectedBounds,
    epsilon_poisson_pld,
    upper_epsilon_poisson_pld,
)
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_rho_of

PLD_CASES = [c for c in cases("poisson_compose") if "eps_pld" in c["expected"]]
REPLACED = cases("poisson_compose_replace")


def events_of(steps):
    return [Event("poisson", z, count, q) for q, z, count in steps]


def interval(steps, delta, neighbours="zero_out"):
    return epsilon_poisson_pld(Composition(neighbours, events_of(steps)), delta=delta)


@pytest.mark.parametrize("case", PLD_CASES + REPLACED, ids=lambda case: case["id"])
def test_golden_values_are_met_by_the_interval_and_the_integral(case):
    steps, delta = case["inputs"]["steps"], case["inputs"]["delta"]
    neighbours, direction = (
        ("replace_one", "replace") if case in REPLACED else ("zero_out", "remove")
    )
    found, exact = interval(steps, delta, neighbours), epsilon_by_integral(steps, delta, direction)
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < 2e-5 * exact
    assert found.estimate == pytest.approx(exact, rel=1e-6)
    assert exact <= case["expected"]["eps_pld"] <= exact * (1 + 1e-5)  # by their lattice of 1e-4


def test_golden_full_batches_are_exact():
    (case,) = [c for c in cases("poisson_compose") if "eps_exact" in c["expected"]]
    found = interval(case["inputs"]["steps"], case["inputs"]["delta"])
    assert found.lower == found.upper
    assert found.upper == pytest.approx(case["expected"]["eps_exact"], rel=case["rtol"])


MIXED = [(0.02, 1.5, 40), (0.05, 3.0, 60), (0.999, 12.0, 3)]


@pytest.mark.parametrize("direction", ["remove", "add", "replace", "swap"])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_mixed_rates_and_multipliers_against_the_integral(direction, delta):
    directed = DirectedBounds(direction, events_of(MIXED), delta)
    while directed.refine():
        pass
    exact = epsilon_by_integral(MIXED, delta, direction)
    assert directed.lower() <= exact <= directed.upper
    assert directed.upper == pytest.approx(exact, rel=2e-5)
    assert directed.lower() == pytest.approx(exact, rel=2e-5)


@settings(max_examples=12, deadline=None)
@given(
    st.floats(-3, -0.05).map(lambda e: 10**e),
    st.floats(-1, 1.5).map(lambda e: 10**e),
    st.floats(-10, -2).map(lambda e: 10**e),
)
def test_one_step_against_the_closed_form(q, z, delta):
    exact = 0.0
    for direction in ("remove", "add"):
        if delta_of_one_step(direction, q, z, 0.0) > delta:
            top = 1.0
            while delta_of_one_step(direction, q, z, top) > delta:
                top *= 2
            root = brentq(lambda e, d=direction: delta_of_one_step(d, q, z, e) - delta, 0, top)
            exact = max(exact, root)
    found = interval([(q, z, 1)], delta)
    assert found.lower <= exact + 1e-9 and exact <= found.upper + 1e-9
    # Both ends hold always. They are close where the record is drawn far more often than δ; with
    # little noise "drawn" and "not drawn" are two scales, and one lattice must span both.
    if delta <= q / 100:
        assert found.upper - found.lower <= 2e-3 * exact + (2e-5 if z > 0.5 else 1e-3 / z)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 0.5), st.floats(0.5, 4), st.floats(0, 1.5), st.floats(0.0, math.pi))
def test_swap_covers_any_two_records_in_one_ball(q, z, epsilon, angle):
    """In the plane: nobody, one record and another, all at most 1 apart."""
    one = np.array([1.0, 0.0])
    turned = min(angle, math.pi / 3)  # |one − other| ≤ 1
    other = np.array([math.cos(turned), math.sin(turned)])
    axis = np.linspace(-9 * z, 1 + 9 * z, 900)
    x, y = np.meshgrid(axis, axis)

    def density(centre):
        return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * z * z))

    absent = (1 - q) * density((0, 0))
    p, other_p = absent + q * density(one), absent + q * density(other)
    delta = np.maximum(p - math.exp(epsilon) * other_p, 0).sum() / p.sum()
    assert delta <= delta_of_one_step("remove", q, z, epsilon) + 1e-9
    if delta > 1e-12:
        assert interval([(q, z, 1)], delta, "replace_in_mean").upper >= epsilon - 1e-9


def test_the_upper_bound_alone_is_that_of_the_interval():
    steps = Composition("zero_out", events_of(MIXED))
    found = epsilon_poisson_pld(steps, delta=1e-5).upper
    assert upper_epsilon_poisson_pld(steps, delta=1e-5) == found


@pytest.mark.parametrize("steps", [[], [(0.01, 1.0, 0)]])
def test_no_steps_cost_nothing(steps):
    assert interval(steps, 1e-5).upper == 0.0


def test_no_noise_costs_everything():
    found = interval([(0.01, 1.0, 5), (0.01, 0.0, 1)], 1e-5)
    assert found.lower == found.upper == math.inf


@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one", "replace_in_mean"])
@pytest.mark.parametrize("z", [1e-6, 1e-3, 0.03])
@pytest.mark.parametrize("delta", [1e-12, 1e-4])
def test_tiny_multipliers(neighbours, z, delta):
    """Of 20 steps at q = 0.1 some k hold the record, each of which costs nearly 1/(2z²)."""
    found = interval([(0.1, z, 20)], delta, neighbours)
    assert 0 < found.lower <= found.estimate <= found.upper < math.inf
    assert 2 * z * z * found.lower > 5 and 2 * z * z * found.upper < 20
    assert found.upper - found.lower < 0.01 * found.upper


def test_a_tiny_multiplier_against_the_closed_form():
    """δ = q P(N(0,1) > t), ε = μ²/2 + μ t + log q + o(1), for one step."""
    from scipy.stats import norm

    q, z, delta = 0.5, 1e-6, 1e-12
    exact = 0.5 / z**2 + norm.isf(delta / q) / z
    found = interval([(q, z, 1)], delta)
    assert found.lower <= exact + 100 and exact - 100 <= found.upper
    assert found.upper - found.lower < 1e-7 * exact


def test_below_the_smallest_multiplier_sampling_is_not_looked_at():
    exact = interval([(1.0, 1e-9, 1)], 1e-5)  # nothing is sampled here
    assert exact.lower == exact.upper
    found = interval([(0.01, 1e-9, 1)], 1e-5)
    whole = math.exp(log_epsilon_exact(log_rho_of([Event("poisson", 1e-9)]), 1e-5))
    assert (found.lower, found.upper) == (0.0, whole)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_a_rate_of_almost_one_is_a_rate_of_one(delta):
    almost = interval([(1 - 1e-9, 5.0, 10)], delta)
    exact = math.exp(log_epsilon_exact(math.log(0.2), delta))
    assert interval([(1.0, 5.0, 10)], delta).upper == pytest.approx(exact, rel=1e-12)
    assert almost.upper == pytest.approx(exact, rel=1e-5, abs=1e-12)
    assert gaussian_delta(exact, math.sqrt(0.4)) == pytest.approx(delta, rel=1e-6) or exact == 0


def test_many_multipliers_are_bounded_from_both_sides(monkeypatch):
    steps = [(0.02, 3.0 / (1 + 0.1 * t), 20) for t in range(20)]
    exact = {n: interval(steps, 1e-5, n) for n in ("zero_out", "replace_one")}
    monkeypatch.setattr(multiplier_groups, "MOST_MULTIPLIERS", 10)
    loose = {n: interval(steps, 1e-5, n) for n in exact}
    for neighbours, found in loose.items():
        assert found.lower <= exact[neighbours].upper and exact[neighbours].lower <= found.upper
        assert found.estimate == found.upper
    too_much = {n: loose[n].upper / exact[n].estimate - 1 for n in exact}
    too_little = 1 - loose["zero_out"].lower / exact["zero_out"].estimate
    assert too_much["zero_out"] < 0.02  # of the second order in the distance of the nodes, 13 %
    assert too_much["replace_one"] < 0.2 and too_little < 0.2
    assert too_much["zero_out"] < 0.3 * min(too_much["replace_one"], too_little)


@pytest.mark.parametrize("delta", [0.0, -0.1, 1.1, math.nan])
def test_impossible_deltas_are_refused(delta):
    one_sentence("delta", interval, [(0.1, 1.0, 1)], delta)


@pytest.mark.slow
@pytest.mark.parametrize("distinct", [50, 10_000])
def test_ten_thousand_heterogeneous_steps_take_seconds(distinct):
    steps = [(0.02, 3 / (1 + 3.5 * t / distinct), 10_000 // distinct) for t in range(distinct)]
    with threadpool_limits(1):  # threads that wait take processor time too
        started = time.process_time()
        found = interval(steps, 5e-4)
        seconds = time.process_time() - started
    assert seconds < 10
    assert found.upper - found.lower < (1e-5 if distinct == 50 else 0.05) * found.upper
