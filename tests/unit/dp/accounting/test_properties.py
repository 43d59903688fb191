"""What must be true of every accountant, whatever the numbers (docs/privacy.md)."""

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_mx.dp.accounting.accountants import ACCOUNTANTS, count_with_all
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.zcdp import yu_rs_of_steps
from edp_mx.errors import UserError

BOUNDS = [name for name, accountant in ACCOUNTANTS.items() if accountant.is_bound]
DELTAS = st.floats(-10, -2).map(lambda e: 10**e)
RATES = st.floats(-2.5, -0.3).map(lambda e: 10**e)
MULTIPLIERS = st.floats(-0.3, 1).map(lambda e: 10**e)
SLACK = 2e-5  # of the width of an interval


def composed(accountant, *, z, q, steps, rate=0.0, epochs=3):
    """Epochs of decaying noise, as the accountant wants them."""
    sampler = ACCOUNTANTS[accountant].sampler
    decay = Decay("linear", rate)
    events = [
        Event(
            sampler,
            z * decay.factor(t),
            steps if sampler == "poisson" else 1,
            q if sampler == "poisson" else 1.0,
        )
        for t in range(epochs)
    ]
    return Composition("zero_out", events)


def epsilon(accountant, *, delta, **what):
    return math.exp(
        ACCOUNTANTS[accountant].count(composed(accountant, **what), delta=delta).epsilon.log
    )


@pytest.mark.parametrize("accountant", BOUNDS)
@settings(max_examples=4, deadline=None)
@given(z=MULTIPLIERS, q=RATES, steps=st.integers(1, 60), delta=DELTAS, factor=st.floats(1.1, 2))
def test_monotone_in_all_that_costs(accountant, z, q, steps, delta, factor):
    usual = {"z": z, "q": q, "steps": steps, "delta": delta, "rate": 0.1, "epochs": 3}
    base = epsilon(accountant, **usual)
    changes = [{"epochs": 4}, {"z": z / factor}, {"rate": 0.1 * factor}, {"delta": delta / factor}]
    if accountant.startswith("poisson"):
        changes += [{"steps": 2 * steps}, {"q": min(1.0, q * factor)}]
    for change in changes:
        assert epsilon(accountant, **{**usual, **change}) >= base * (1 - SLACK) - 1e-9, change


@settings(max_examples=8, deadline=None)
@given(z=MULTIPLIERS, q=RATES, steps=st.integers(1, 60), delta=DELTAS)
def test_exact_below_renyi_below_simple(z, q, steps, delta):
    what = {"z": z, "q": q, "steps": steps, "delta": delta, "rate": 0.1}
    for names in (("rf_exact", "rf_renyi", "rf_zcdp"), ("poisson_pld", "poisson_rdp")):
        found = [epsilon(name, **what) for name in names]
        for tight, loose in zip(found, found[1:]):
            assert tight <= loose * (1 + SLACK) + 1e-9
    unsampled = Composition(
        "zero_out", [Event("shuffle", z / (1 + 0.1 * t), steps) for t in range(3)]
    )
    whole = ACCOUNTANTS["rf_renyi"].count(unsampled, delta=delta).epsilon.log
    assert epsilon("poisson_rdp", **what) <= math.exp(whole) * (1 + 1e-9)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_the_order_of_events_changes_nothing(accountant):
    composition = composed(accountant, z=1.3, q=0.05, steps=20, rate=0.3, epochs=6)
    single = [dataclasses.replace(e, count=1) for e in composition.events for _ in range(e.count)]
    random.Random(3).shuffle(single)
    shuffled = ACCOUNTANTS[accountant].count(Composition("zero_out", single), delta=1e-5)
    straight = ACCOUNTANTS[accountant].count(composition, delta=1e-5)
    assert shuffled.epsilon.log == pytest.approx(straight.epsilon.log, abs=1e-7)


def test_all_accountants_of_a_sampler_side_by_side():
    steps = composed("poisson_pld", z=1.3, q=0.05, steps=20)
    found = {count.accountant: count for count in count_with_all(steps, delta=1e-5)}
    assert list(found) == ["poisson_pld", "poisson_rdp", "gdp_clt", "paper_rs"]
    assert [ACCOUNTANTS[name].is_bound for name in found] == [True, True, False, False]
    replaced = Composition("replace_in_mean", steps.events)
    names = [count.accountant for count in count_with_all(replaced, delta=1e-5)]
    assert names == ["poisson_pld", "gdp_clt", "paper_rs"]
    shuffled = count_with_all(composed("rf_exact", z=1.3, q=1.0, steps=1), delta=1e-5)
    assert [count.accountant for count in shuffled] == ["rf_exact", "rf_renyi", "rf_zcdp"]
    assert all(
        count.epsilon.value == 0 for count in count_with_all(Composition("zero_out"), delta=0.1)
    )


def test_the_heuristic_of_steps_is_that_of_epochs():
    steps = Composition("zero_out", [Event("poisson", z, 100, 0.01) for z in (8.0, 7.0)])
    expected = yu_rs_of_steps([(0.01, 8.0, 100), (0.01, 7.0, 100)], delta=1e-5)
    assert ACCOUNTANTS["paper_rs"].count(steps, delta=1e-5).epsilon.value == pytest.approx(
        expected["epsilon"]
    )
    silent = Composition("zero_out", [Event("poisson", 0.0, 1, 0.01)])
    assert ACCOUNTANTS["paper_rs"].count(silent, delta=1e-5).epsilon.is_infinite


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_an_accountant_refuses_the_other_sampler(accountant):
    sampler = ACCOUNTANTS[accountant].sampler
    other = "shuffle" if sampler == "poisson" else "poisson"
    with pytest.raises(UserError, match=f"given {other} events.*choose one of {other} sampling"):
        ACCOUNTANTS[accountant].count(Composition("zero_out", [Event(other, 1.0)]), delta=1e-5)
