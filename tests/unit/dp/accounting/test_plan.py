"""A plan: its events, both its ε, its noise, and that it comes back from JSON."""

import dataclasses
import json
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import one_sentence
from support.releases import release_with

from edp_mx.dp.accounting.choices import SCALES_SOURCES
from edp_mx.dp.accounting.counting import as_published, count_as_published, count_what_holds
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS, Declaration
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.entries import SCALES
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release

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


def test_as_published_is_the_multiplier_as_it_is():
    plan = shuffled_plan(z=0.5, epochs=10, decay=Decay(), delta=5e-4)
    given = {count.accountant: count for count in guarantee(plan).by_accountant["as_published"]}
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


@pytest.mark.parametrize(
    "field, value",
    [
        ("noise_multiplier", -1.0),
        ("noise_multiplier", math.inf),
        ("noise_multiplier", math.nan),
        ("delta", 0.0),
        ("delta", 1.5),
        ("delta", math.nan),
        ("epochs", -1),
        ("steps_per_epoch", -1),
        ("scales_source", "guess"),
        ("private_inputs", ("weather",)),
        ("assumed_public", ("weather",)),
    ],
)
def test_what_no_run_can_have_is_refused_by_name(field, value):
    one_sentence(field, dataclasses.replace, shuffled_plan(), **{field: value})


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
        sample_rate=st.floats(1e-15, 1),
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
    declarations=st.none() | st.lists(
        st.builds(Declaration, st.just("start"), st.text(max_size=9), st.booleans()), max_size=2
    ).map(tuple),
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
