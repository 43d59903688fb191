"""A planned run: its events, both its ε, and the noise for a wanted one."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_mx.accounting.accountants import count_with
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import poisson_steps, shuffled_epochs
from edp_mx.accounting.plan import AS_GIVEN, Plan
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError


def release(**changes):
    given = {
        "num_workers": 4,
        "micro_batch_size": 8,
        "max_grad_norm": 0.7,
        "layer_scales": (1.0, 0.5),
        "adjacency": "replace_one",
        "variant": "published",
    }
    return Release(**{**given, **changes})


def poisson_plan(**changes):
    drawn = release(sampler="poisson", **changes)
    return Plan(drawn, Decay("linear", 0.2), epochs=3, steps_per_epoch=50, sample_rate=0.02)


def assert_alike(found, expected):
    """Equal events, but for rounding."""
    numbers = [[(event.sampler, event.count) for event in events] for events in (found, expected)]
    assert numbers[0] == numbers[1]
    for name in ("effective_noise_multiplier", "sample_rate"):
        assert [getattr(event, name) for event in found] == pytest.approx(
            [getattr(event, name) for event in expected], rel=1e-14
        )


def test_its_events_are_those_of_the_accountants():
    plan = Plan(release(), Decay("linear", 0.2), epochs=5)
    expected = shuffled_epochs(
        release=plan.release, noise_multiplier=2.0, decay=plan.decay, epochs=5
    )
    assert_alike(plan.composition(2.0).events, expected.events)
    for adjacency in ("replace_one", "zero_out"):
        plan = poisson_plan(adjacency=adjacency)
        expected = poisson_steps(
            release=plan.release,
            noise_multiplier=2.0,
            decay=plan.decay,
            epochs=3,
            steps_per_epoch=50,
            sample_rate=0.02,
        )
        found = plan.composition(2.0)
        assert found.neighbours == expected.neighbours
        assert_alike(found.events, expected.events)


@pytest.mark.parametrize("plan", [Plan(release(), Decay("linear", 0.2), 5), poisson_plan()])
def test_what_holds_is_what_its_accountant_says(plan):
    name = "poisson_pld" if plan.is_poisson else "rf_exact"
    expected = count_with(name, plan.composition(2.0), delta=1e-5).epsilon
    found = plan.count_what_holds(2.0, delta=1e-5)
    assert found.accountant == name
    assert found.epsilon.log == pytest.approx(expected.log, rel=1e-12)


def test_as_given_is_the_multiplier_as_it_is():
    plan = Plan(release(), Decay(), 10)
    assert plan.count_as_given(0.5, delta=5e-4).rho.value == pytest.approx(20)  # 10 / (2 * 0.25)
    assert plan.count_as_published(0.5, delta=5e-4).rho.value == pytest.approx(20)
    assert plan.count_what_holds(0.5, delta=5e-4).rho.value == pytest.approx(20 * 16)
    assert {
        event.effective_noise_multiplier for event in plan.composition_as_given(0.5).events
    } == {0.5}
    poisson = poisson_plan().composition_as_given(0.5)
    assert poisson.neighbours == "zero_out"
    assert [event.count for event in poisson.events] == [50, 50, 50]


@settings(max_examples=60)
@given(
    st.floats(0.01, 100),
    st.sampled_from([1e-9, 1e-5, 1e-3]),
    st.sampled_from(["published", "calibrated"]),
    st.integers(1, 64),
    st.integers(1, 100),
)
def test_a_calibrated_multiplier_is_safe_and_not_wasteful(target, delta, variant, workers, epochs):
    plan = Plan(release(variant=variant, num_workers=workers), Decay("exponential", 0.05), epochs)
    z, holds = plan.calibrate(target_epsilon=target, delta=delta)
    assert plan.count_what_holds(z, delta=delta).epsilon == holds.epsilon
    assert holds.epsilon.value <= target
    less = plan.count_what_holds(z * (1 - 1e-6), delta=delta).epsilon
    assert less.value > target


@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_poisson_calibration_is_safe_and_not_wasteful(variant):
    plan = poisson_plan(variant=variant)
    z, holds = plan.calibrate(target_epsilon=2.0, delta=1e-5)
    assert holds.epsilon.value <= 2.0
    assert plan.count_what_holds(z * 0.999, delta=1e-5).epsilon.value > 2.0
    shuffled = Plan(release(variant=variant), plan.decay, plan.epochs)
    assert z < shuffled.calibrate(target_epsilon=2.0, delta=1e-5)[0]


def test_impossible_plans():
    with pytest.raises(UserError, match="epochs"):
        Plan(AS_GIVEN, Decay(), -1)
    with pytest.raises(UserError, match="target"):
        Plan(AS_GIVEN, Decay(), 3).calibrate(target_epsilon=0.0, delta=1e-5)
    assert Plan(AS_GIVEN, Decay(), 0).count_what_holds(0.0, delta=1e-5).epsilon.log == -math.inf
