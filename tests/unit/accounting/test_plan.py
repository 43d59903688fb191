"""A plan: its events, both its ε, its noise, and that it comes back from JSON."""

import dataclasses
import json
import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.releases import release_with

from edp_mx.accounting.accountants import count_with
from edp_mx.accounting.choices import SCALES_SOURCES
from edp_mx.accounting.counting import (
    as_published,
    count_as_published,
    count_what_holds,
    counts_as_published,
)
from edp_mx.accounting.coverage import PRIVATE_INPUTS
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.entries import SCALES
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.accounting.target import calibrated
from edp_mx.errors import UserError

# All that the multiplier says, and one record moves it by C: what the paper takes as given.
AS_PUBLISHED = release_with(
    num_workers=1, micro_batch_size=1, adjacency="zero_out", variant="published"
)
release = partial(release_with, max_grad_norm=0.7, layer_scales=(1.0, 0.5), variant="published")


def shuffled_plan(*, epochs=5, z=2.0, delta=1e-5, decay=None, **changes):
    return Plan(
        release(**changes),
        noise_multiplier=z,
        decay=decay or Decay("linear", 0.2),
        epochs=epochs,
        delta=delta,
    )


def poisson_plan(*, z=2.0, epochs=3, **changes):
    drawn = release(sampler="poisson", sample_rate=0.02, **changes)
    return Plan(
        drawn,
        noise_multiplier=z,
        decay=Decay("linear", 0.2),
        epochs=epochs,
        steps_per_epoch=50,
        delta=1e-5,
    )


def holds(plan):
    return count_what_holds(plan, plan.entries())


def published(plan):
    return count_as_published(plan, plan.entries())


@pytest.mark.parametrize("adjacency", ["replace_one", "zero_out"])
def test_its_events_are_those_of_the_formula(adjacency):
    """κ = 2 and √4 workers leave z/4; M = 8, so that a mean of several is clipped."""
    neighbours = {"replace_one": "replace_in_mean", "zero_out": "zero_out"}[adjacency]
    for plan, epochs, sampler, count, rate in (
        (shuffled_plan(adjacency=adjacency), 5, "shuffle", 1, 1.0),
        (poisson_plan(adjacency=adjacency), 3, "poisson", 50, 0.02),
    ):
        found = plan.composition(plan.entries())
        assert found.neighbours == neighbours
        assert [(e.sampler, e.count, e.sample_rate) for e in found.events] == [
            (sampler, count, rate)
        ] * epochs
        expected = [2.0 / (1 + 0.2 * t) / 4 for t in range(epochs)]
        effective = [event.effective_noise_multiplier for event in found.events]
        assert effective == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("plan", [shuffled_plan(), poisson_plan()])
def test_what_holds_is_what_its_accountant_says(plan):
    name = "poisson_pld" if plan.release.sampler == "poisson" else "rf_exact"
    expected = count_with(name, plan.composition(plan.entries()), delta=1e-5).epsilon
    found = holds(plan)
    assert found.accountant == name
    assert found.epsilon.log == pytest.approx(expected.log, rel=1e-12)


def test_as_published_is_the_multiplier_as_it_is():
    plan = shuffled_plan(z=0.5, epochs=10, decay=Decay(), delta=5e-4)
    given = {count.accountant: count for count in counts_as_published(plan, plan.entries())}
    assert given["rf_exact"].rho.value == pytest.approx(20)  # 10 / (2 * 0.25)
    assert published(plan).rho.value == pytest.approx(20)
    assert holds(plan).rho.value == pytest.approx(20 * 16)
    events = as_published(plan.entries()).events
    assert {event.effective_noise_multiplier for event in events} == {0.5}
    poisson = as_published(poisson_plan(z=0.5).entries())
    assert poisson.neighbours == "zero_out"
    assert [event.count for event in poisson.events] == [50, 50, 50]
    alone = dataclasses.replace(plan, release=AS_PUBLISHED)
    assert holds(alone).epsilon == given["rf_exact"].epsilon


@settings(max_examples=60)
@given(
    st.floats(0.01, 100),
    st.sampled_from([1e-9, 1e-5, 1e-3]),
    st.sampled_from(["published", "calibrated"]),
    st.integers(1, 64),
    st.integers(1, 100),
)
def test_a_calibrated_multiplier_is_safe_and_not_wasteful(target, delta, variant, workers, epochs):
    plan = shuffled_plan(
        variant=variant,
        num_workers=workers,
        decay=Decay("exponential", 0.05),
        epochs=epochs,
        delta=delta,
    )
    found = calibrated(plan, target_epsilon=target)
    assert found == plan.with_noise_multiplier(found.noise_multiplier)
    assert holds(found).epsilon.value <= target
    less = holds(plan.with_noise_multiplier(found.noise_multiplier * (1 - 1e-6))).epsilon
    assert less.value > target


@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_poisson_calibration_is_safe_and_not_wasteful(variant):
    plan = poisson_plan(variant=variant)
    found = calibrated(plan, target_epsilon=2.0)
    z = found.noise_multiplier
    assert holds(found).epsilon.value <= 2.0
    assert holds(plan.with_noise_multiplier(z * 0.999)).epsilon.value > 2.0
    shuffled = shuffled_plan(variant=variant, epochs=plan.epochs)
    assert z < calibrated(shuffled, target_epsilon=2.0).noise_multiplier


def test_impossible_plans():
    with pytest.raises(UserError, match="epochs"):
        Plan(AS_PUBLISHED, 1.0, Decay(), -1, delta=1e-5)
    with pytest.raises(UserError, match="target"):
        calibrated(Plan(AS_PUBLISHED, 1.0, Decay(), 3, delta=1e-5), target_epsilon=0.0)
    nothing = Plan(AS_PUBLISHED, 0.0, Decay(), 0, delta=1e-5)
    assert holds(nothing).epsilon.log == -math.inf


@pytest.mark.parametrize(
    "field, value",
    [
        ("noise_multiplier", -1.0),
        ("noise_multiplier", math.inf),
        ("noise_multiplier", math.nan),
        ("delta", 0.0),
        ("delta", 1.5),
        ("delta", math.nan),
        ("steps_per_epoch", -1),
        ("scales_source", "guess"),
        ("private_inputs", ("weather",)),
        ("assumed_public", ("weather",)),
    ],
)
def test_what_no_run_can_have_is_refused_by_name(field, value):
    with pytest.raises(UserError, match=field):
        dataclasses.replace(shuffled_plan(), **{field: value})


PLANS = st.builds(
    Plan,
    release=st.builds(
        Release,
        unit=st.sampled_from(["micro_batch", "utterance", "user"]),
        num_workers=st.integers(1, 64),
        micro_batch_size=st.integers(1, 64),
        max_grad_norm=st.floats(1e-3, 1e3),
        layer_scales=st.none() | st.lists(st.floats(1e-2, 1), max_size=4).map(lambda a: (1.0, *a)),
        adjacency=st.sampled_from(["replace_one", "zero_out"]),
        variant=st.just("calibrated"),
        sampler=st.sampled_from(["shuffle", "poisson"]),
        sample_rate=st.floats(0, 1),
    ),
    noise_multiplier=st.floats(0, 1e6),
    decay=st.builds(
        Decay, st.sampled_from(["linear", "exponential"]), st.floats(0, 1)
    ) | st.just(Decay()),
    epochs=st.integers(0, 20),
    delta=st.floats(1e-300, 1),
    steps_per_epoch=st.integers(0, 100),
    num_records=st.none() | st.integers(1, 10**9),
    delta_mode=st.sampled_from(["default", "value", "paper"]),
    scales_source=st.sampled_from(SCALES_SOURCES),
    scales_multiplier=st.none() | st.floats(0.1, 100),
    private_inputs=st.lists(st.sampled_from(sorted(PRIVATE_INPUTS)), unique=True),
    assumed_public=st.lists(st.sampled_from(sorted(PRIVATE_INPUTS)), unique=True),
    seed_is_fixed=st.booleans(),
    chooses_checkpoint=st.booleans(),
    stops_early=st.booleans(),
    max_epsilon=st.none() | st.floats(0.1, 100),
)  # fmt: skip


@given(PLANS)
def test_a_plan_comes_back_from_json(plan):
    line = json.dumps(plan.to_dict(), allow_nan=False)
    assert Plan.from_dict(json.loads(line)) == plan
    without = dataclasses.replace(plan, release=None)
    assert Plan.from_dict(json.loads(json.dumps(without.to_dict()))) == without


@pytest.mark.parametrize(
    "change",
    [{"release": "x"}, {"decay": None}, {"surplus": 1}, {"epochs": "ten"}, {"delta": None}],
)
def test_what_is_no_plan_is_refused(change):
    with pytest.raises(UserError):
        Plan.from_dict({**shuffled_plan().to_dict(), **change})


@given(PLANS)
def test_the_noise_that_is_drawn_is_the_noise_that_is_counted(plan):
    """κ C z_t α_k / B on the aggregate, against which one record moves it by κ C α_k / B."""
    law = plan.release
    batch = law.num_workers * law.micro_batch_size
    if law.unit == "micro_batch":
        batch = law.num_workers
    for epoch in range(plan.epochs):
        entry, z = plan.entry(epoch), plan.noise_multiplier_at(epoch)
        assert entry.noise_multiplier == z
        assert z == plan.noise_multiplier * plan.decay.factor(epoch)
        drawn = law.worker_noise_stddev(z)
        scales = law.layer_scales or (1.0,)
        assert len(drawn) == len(scales)
        for stddev, scale in zip(drawn, scales):
            on_aggregate = stddev / math.sqrt(law.num_workers)
            moved = law.kappa * law.max_grad_norm * scale / batch
            found = entry.event.effective_noise_multiplier
            if law.neighbours == "replace_one" and law.sampler == "poisson":
                found /= 2  # an event there is relative to one of two records
            assert found == pytest.approx(on_aggregate / moved, rel=1e-12, abs=1e-300)


def test_alpha_changes_no_epsilon_and_its_release_does():
    unknown = shuffled_plan(layer_scales=None, variant="calibrated")
    known = unknown.with_layer_scales((0.25, 1.0, 0.5))
    assert known.entries() == unknown.entries()
    assert known.without_layer_scales() == unknown
    with pytest.raises(ValueError, match="largest layer scale"):
        unknown.with_layer_scales((0.5, 0.25))
    released = dataclasses.replace(unknown, scales_source="dp_release", scales_multiplier=10.0)
    assert [entry.what for entry in released.entries()][:2] == [SCALES, "epoch 0"]
    rho = [holds(plan).rho.value for plan in (unknown, released)]
    assert rho[1] - rho[0] == pytest.approx(1 / 200, rel=1e-9)
    # the records are taken without chance: no rate, and relative to one record of two
    drawn = dataclasses.replace(
        poisson_plan(unit="utterance", variant="calibrated"), scales_multiplier=10.0
    )
    (entry,) = drawn.scales_entries()
    assert (entry.event.effective_noise_multiplier, entry.event.sample_rate) == (20.0, 1.0)


def test_another_delta_must_be_below_1_over_n():
    plan = dataclasses.replace(shuffled_plan(), num_records=1000)
    assert plan.with_delta(1e-6).delta_mode == "value"
    with pytest.raises(UserError, match="1/n"):
        plan.with_delta(1e-3)
