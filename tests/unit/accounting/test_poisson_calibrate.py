"""Poisson calibration: golden multipliers, and the way back."""

from __future__ import annotations

import math

import pytest
from golden_vectors import cases
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.accounting import calibrate
from edp_mx.accounting.calibrate import calibrate_poisson, calibrate_rf, solve_multiplier
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.pld.interval import upper_epsilon_poisson_pld
from edp_mx.errors import UserError

SOUND = {
    "target_epsilon": 2.0,
    "delta": 1e-5,
    "decay": Decay("linear", 0.1),
    "epochs": 2,
    "steps_per_epoch": 10,
    "sample_rate": 0.1,
}


def epsilon_at(z, values, neighbours="zero_out"):
    steps = [
        Event(
            "poisson",
            values["decay"].noise_multiplier_at(z, t),
            values["steps_per_epoch"],
            values["sample_rate"],
        )
        for t in range(values["epochs"])
    ]
    return upper_epsilon_poisson_pld(Composition(neighbours, steps), delta=values["delta"])


@pytest.mark.parametrize("case", cases("calibrate_poisson_pld"), ids=lambda case: case["id"])
def test_golden_values(case):
    inputs = case["inputs"]
    found = calibrate_poisson(
        target_epsilon=inputs["eps"],
        delta=inputs["delta"],
        decay=Decay(inputs["decay"], inputs["tau"]),
        epochs=inputs["epochs"],
        steps_per_epoch=inputs["steps_per_epoch"],
        sample_rate=inputs["q"],
    )
    assert found == pytest.approx(case["expected"]["z0"], rel=case["rtol"])


@pytest.mark.parametrize(
    "target, neighbours",
    [
        (0.05, "zero_out"),
        (200.0, "zero_out"),
        (2.0, "replace_one"),
        (2.0, "replace_in_mean"),
    ],
)
def test_the_target_is_met_and_not_exceeded(target, neighbours):
    values = {**SOUND, "target_epsilon": target}
    z = calibrate_poisson(**values, neighbours=neighbours)
    assert epsilon_at(z, values, neighbours) <= target
    assert epsilon_at(z * (1 - 2e-5), values, neighbours) > target


def test_full_batches_are_the_closed_form():
    values = {**SOUND, "sample_rate": 1.0, "steps_per_epoch": 1, "epochs": 6}
    closed = calibrate_rf(target_epsilon=2.0, delta=1e-5, decay=values["decay"], epochs=6)
    assert calibrate_poisson(**values) == pytest.approx(closed, rel=1e-5)


def test_a_few_bounds_are_enough(monkeypatch):
    """n = 1000, B = 128, N = 4, T = 5: each bound takes a tenth of a second."""
    looks = []

    def counted(*arguments, **named):
        looks.append(arguments)
        return upper_epsilon_poisson_pld(*arguments, **named)

    monkeypatch.setattr(calibrate, "upper_epsilon_poisson_pld", counted)
    values = {
        "delta": 5e-4,
        "decay": Decay("exponential", 0.1),
        "epochs": 5,
        "steps_per_epoch": 8,
        "sample_rate": 0.128,
    }
    z = calibrate_poisson(target_epsilon=8.0, neighbours="replace_in_mean", **values)
    assert len(looks) <= 10
    assert epsilon_at(z, values, "replace_in_mean") <= 8.0


@given(st.floats(-4, 4).map(lambda e: 10**e), st.floats(-3, 3).map(lambda e: 10**e))
def test_the_solver_needs_few_looks_near_its_start(scale, start):
    looks = []

    def epsilon_of(z):
        looks.append(z)
        return scale / z + (scale / z) ** 2

    z = solve_multiplier(epsilon_of, target_epsilon=2.0, start=start)
    assert scale * (1 - 1e-12) <= z <= scale * (1 + 1e-5)
    assert len(looks) <= 25


@pytest.mark.parametrize(
    "field, value",
    [
        ("target_epsilon", 0.0),
        ("target_epsilon", math.inf),
        ("target_epsilon", math.nan),
        ("delta", 0.0),
        ("delta", 1.0),
        ("epochs", 0),
        ("steps_per_epoch", 0),
        ("sample_rate", 0.0),
        ("neighbours", "add_remove"),
    ],
)
def test_impossible_targets_are_refused_by_name(field, value):
    with pytest.raises(UserError, match=field):
        calibrate_poisson(**{**SOUND, field: value})


@pytest.mark.parametrize("epsilon", [1e9, 1e-9])
def test_a_target_out_of_reach_says_so(epsilon):
    with pytest.raises(UserError, match="no noise multiplier"):
        solve_multiplier(lambda z: epsilon, target_epsilon=1.0)
