"""Calibration: golden multipliers, and the way back."""

import math

import pytest
from support.golden_vectors import cases

from edp_mx.accounting.calibrate import calibrate_poisson, calibrate_rf, solve_multiplier
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.pld.interval import upper_epsilon_poisson_pld
from edp_mx.errors import UserError

SHUFFLED = {"target_epsilon": 2.0, "delta": 1e-5, "decay": Decay("linear", 0.1), "epochs": 2}
POISSON = {**SHUFFLED, "steps_per_epoch": 10, "sample_rate": 0.1}


def arguments_of(inputs):
    """Of a golden case."""
    decay = Decay(inputs["decay"], inputs["tau"])
    shared = {"target_epsilon": inputs["eps"], "decay": decay}
    return {**shared, **{name: inputs[name] for name in ("delta", "epochs")}}


@pytest.mark.parametrize("case", cases("calibrate_rf"), ids=lambda case: case["id"])
def test_golden_values_of_shuffled_epochs(case):
    found = calibrate_rf(**arguments_of(case["inputs"]))
    assert found == pytest.approx(case["expected"]["z0_exact"], rel=case["rtol"])


@pytest.mark.parametrize("case", cases("calibrate_poisson_pld"), ids=lambda case: case["id"])
def test_golden_values_of_poisson_steps(case):
    inputs = case["inputs"]
    found = calibrate_poisson(
        **arguments_of(inputs), steps_per_epoch=inputs["steps_per_epoch"], sample_rate=inputs["q"]
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
def test_poisson_steps_meet_the_target_and_do_not_exceed_it(target, neighbours):
    z = calibrate_poisson(**{**POISSON, "target_epsilon": target}, neighbours=neighbours)

    def epsilon(multiplier):
        noise = [POISSON["decay"].noise_multiplier_at(multiplier, t) for t in range(2)]
        steps = Composition(neighbours, [Event("poisson", z_t, 10, 0.1) for z_t in noise])
        return upper_epsilon_poisson_pld(steps, delta=1e-5)

    assert epsilon(z) <= target
    assert epsilon(z * (1 - 2e-5)) > target


def test_full_batches_are_the_closed_form():
    found = calibrate_poisson(**{**POISSON, "sample_rate": 1.0, "steps_per_epoch": 1, "epochs": 6})
    assert found == pytest.approx(calibrate_rf(**{**SHUFFLED, "epochs": 6}), rel=1e-5)


@pytest.mark.parametrize("epsilon", [1e9, 1e-9])
def test_a_target_out_of_reach_says_so(epsilon):
    with pytest.raises(UserError, match="no noise multiplier"):
        solve_multiplier(lambda z: epsilon, target_epsilon=1.0)


def test_a_target_beyond_doubles_says_so():
    with pytest.raises(UserError, match="decay rate"):
        calibrate_rf(**{**SHUFFLED, "decay": Decay("exponential", 10.0), "epochs": 1000})


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
        calibrate_poisson(**{**POISSON, field: value})
    if field in SHUFFLED:
        with pytest.raises(UserError, match=field):
            calibrate_rf(**{**SHUFFLED, field: value})
