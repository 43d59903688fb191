"""Calibration: golden values, and the way back."""

from __future__ import annotations

import math

import pytest
from golden_vectors import cases
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.accounting.calibrate import calibrate_rf
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.zcdp import log_epsilon_exact, log_rho_rf
from edp_mx.errors import UserError

SOUND = {"target_epsilon": 1.0, "delta": 1e-5, "decay": Decay(), "epochs": 3}


@pytest.mark.parametrize("case", cases("calibrate_rf"), ids=lambda case: case["id"])
def test_golden_values(case):
    inputs = case["inputs"]
    found = calibrate_rf(
        target_epsilon=inputs["eps"],
        delta=inputs["delta"],
        decay=Decay(inputs["decay"], inputs["tau"]),
        epochs=inputs["epochs"],
    )
    assert found == pytest.approx(case["expected"]["z0_exact"], rel=case["rtol"])


@given(
    st.floats(-3, 5).map(lambda exponent: 10**exponent),
    st.floats(-12, -1).map(lambda exponent: 10**exponent),
    st.floats(0, 0.5),
    st.integers(1, 60),
)
def test_the_target_is_met_and_not_exceeded(target, delta, rate, epochs):
    decay = Decay("exponential", rate)
    z = calibrate_rf(target_epsilon=target, delta=delta, decay=decay, epochs=epochs)

    def log_epsilon(multiplier):
        return log_epsilon_exact(log_rho_rf(multiplier, decay=decay, epochs=epochs), delta)

    assert log_epsilon(z) <= math.log(target)
    assert log_epsilon(z * (1 - 1e-6)) > math.log(target)


def test_a_target_beyond_doubles_says_so():
    with pytest.raises(UserError, match="decay rate"):
        calibrate_rf(**{**SOUND, "decay": Decay("exponential", 10.0), "epochs": 1000})


@pytest.mark.parametrize(
    "field, value",
    [
        ("target_epsilon", 0.0),
        ("target_epsilon", math.inf),
        ("target_epsilon", math.nan),
        ("delta", 0.0),
        ("delta", 1.0),
        ("epochs", 0),
    ],
)
def test_impossible_targets_are_refused_by_name(field, value):
    with pytest.raises(UserError, match=field):
        calibrate_rf(**{**SOUND, field: value})
