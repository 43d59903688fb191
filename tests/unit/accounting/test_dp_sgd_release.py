"""Where each example is clipped: κ, the noise, the pair of neighbours, and ε beside the field's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.accounting.accountants import count_with
from edp_mx.accounting.bound import count_released
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import event_of, neighbours_of, poisson_steps
from edp_mx.accounting.guarantee import guarantee
from edp_mx.accounting.ledger_guarantee import guarantee_of
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.published import count_published
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError

SOUND = {
    "num_workers": 4,
    "micro_batch_size": 8,
    "max_grad_norm": 0.7,
    "layer_scales": (1.0, 0.5),
    "adjacency": "zero_out",
    "variant": "calibrated",
    "clips": "example",
}


def release_with(**changes):
    return Release(**{**SOUND, **changes})


def plan_with(*, epochs=2, steps=40, rate=0.05, decay=None, **changes):
    drawn = release_with(sampler="poisson", **changes)
    return Plan(drawn, decay or Decay(), epochs, steps_per_epoch=steps, sample_rate=rate)


RELEASES = st.builds(
    Release,
    num_workers=st.integers(1, 64),
    micro_batch_size=st.integers(1, 64),
    max_grad_norm=st.floats(1e-3, 1e3),
    layer_scales=st.lists(st.floats(1e-2, 10), min_size=1, max_size=5),
    adjacency=st.sampled_from(["replace_one", "zero_out"]),
    variant=st.just("calibrated"),
    sampler=st.sampled_from(["shuffle", "poisson"]),
    clips=st.just("example"),
)


@given(RELEASES, st.floats(1e-6, 100))
def test_the_multiplier_is_what_is_left(release, z):
    assert release.kappa == (1 if release.adjacency == "zero_out" else 2)
    assert release.effective_noise_multiplier(z) == pytest.approx(z, rel=1e-12)
    alone = z / math.sqrt(release.num_workers)
    assert release.worker_noise_multiplier(z) == pytest.approx(alone, rel=1e-12)


@given(RELEASES)
def test_noise_and_sensitivity_are_those_of_the_sum_over_the_batch(release):
    """std κ C z α_k / B and sensitivity κ C max α / B, as of DP-SGD on one worker with batch B."""
    batch, c, z = release.num_workers * release.micro_batch_size, release.max_grad_norm, 1.7
    for stddev, scale in zip(release.aggregate_noise_stddev(z), release.layer_scales):
        assert stddev == pytest.approx(release.kappa * c * z * scale / batch, rel=1e-12)
    expected = release.kappa * c * max(release.layer_scales) / batch
    assert release.aggregate_sensitivity == pytest.approx(expected, rel=1e-12)


@given(
    gradients=st.lists(st.integers(-6, 6), min_size=2, max_size=5),
    changed=st.integers(-6, 6),
    size=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_no_draw_is_moved_by_more_than_the_sensitivity(gradients, changed, size):
    """All draws of a small shard: its first record is left out, or replaced, by enumeration."""
    first, *others = gradients
    given = {"num_workers": 1, "micro_batch_size": size, "max_grad_norm": 1.0,
             "layer_scales": (1.0,), "sampler": "poisson"}  # fmt: skip
    moved = {"zero_out": 0.0, "replace_one": 0.0}
    for drawn in itertools.product([False, True], repeat=len(others)):
        rest = sum(np.clip(g, -1, 1) for g, there in zip(others, drawn) if there)
        ways = [(rest + np.clip(g, -1, 1)) / size for g in (first, 0, changed)]
        moved["zero_out"] = max(moved["zero_out"], abs(ways[0] - ways[1]))
        moved["replace_one"] = max(moved["replace_one"], abs(ways[0] - ways[2]))
    for adjacency, most in moved.items():
        sensitivity = release_with(**given, adjacency=adjacency).aggregate_sensitivity
        assert most <= sensitivity + 1e-12
        if abs(first) >= 1 and (adjacency == "zero_out" or first * changed < 0):
            assert most == pytest.approx(sensitivity)  # the bound is reached


def test_the_noise_of_algorithm_1_is_refused():
    with pytest.raises(UserError, match="the noise of Algorithm 1"):
        release_with(variant="published")
    with pytest.raises(UserError, match="clips is 'batch'; choose one of micro_batch, example"):
        release_with(clips="batch")


@pytest.mark.parametrize(
    "adjacency, sampler, neighbours, factor",
    [
        ("zero_out", "shuffle", "zero_out", 1),
        ("zero_out", "poisson", "zero_out", 1),
        ("replace_one", "shuffle", "replace_one", 1),
        ("replace_one", "poisson", "replace_one", 2),  # relative to one of the two records
    ],
)
def test_events_are_relative_to_what_their_pair_moves(adjacency, sampler, neighbours, factor):
    release = release_with(adjacency=adjacency, sampler=sampler)
    assert neighbours_of(release) == neighbours
    event = event_of(release, 1.5, steps=7, sample_rate=0.25)
    assert event.effective_noise_multiplier == pytest.approx(1.5 * factor)
    assert (event.count, event.sample_rate) == ((7, 0.25) if sampler == "poisson" else (1, 1.0))


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_plan_and_steps_are_the_same(adjacency):
    plan = plan_with(adjacency=adjacency, decay=Decay("linear", 0.3))
    expected = poisson_steps(release=plan.release, noise_multiplier=1.2, decay=plan.decay,
                             epochs=2, steps_per_epoch=40, sample_rate=0.05)  # fmt: skip
    found = plan.composition(1.2)
    assert found.neighbours == expected.neighbours
    for one, other in zip(found.events, expected.events):
        assert one.effective_noise_multiplier == pytest.approx(
            other.effective_noise_multiplier, rel=1e-12
        )
        assert (one.count, one.sample_rate) == (other.count, other.sample_rate)


@pytest.mark.parametrize(
    "adjacency, relation", [("zero_out", "ADD_OR_REMOVE_ONE"), ("replace_one", "REPLACE_ONE")]
)
def test_epsilon_is_that_of_dp_accounting(adjacency, relation):
    """Theirs gets the noise and the clipping norm of the sum as they are, without κ."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    z, delta, plan = 0.9, 1e-5, plan_with(adjacency=adjacency)
    batch = plan.release.num_workers * plan.release.micro_batch_size
    stddev = plan.release.aggregate_noise_stddev(z)[0]  # of the layer with α = 1
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        stddev,
        sensitivity=plan.release.max_grad_norm / batch,  # of one record's clipped gradient
        sampling_prob=plan.sample_rate,
        value_discretization_interval=1e-4,
        neighboring_relation=getattr(dp_accounting.NeighboringRelation, relation),
    ).self_compose(80)
    found = plan.count_what_holds(z, delta=delta)
    assert found.epsilon.value == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-5)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_calibration_is_inverse_to_counting(adjacency):
    plan = plan_with(adjacency=adjacency)
    z, holds = plan.calibrate(target_epsilon=3.0, delta=1e-5)
    assert holds.epsilon.value <= 3.0
    assert plan.count_what_holds(z * (1 - 1e-4), delta=1e-5).epsilon.value > 3.0
    shuffled = Plan(release_with(adjacency=adjacency), Decay(), 5)
    z, holds = shuffled.calibrate(target_epsilon=3.0, delta=1e-5)
    assert holds.epsilon.value == pytest.approx(3.0, rel=1e-6) and holds.epsilon.value <= 3.0


def test_at_the_same_noise_replacing_is_dearer_than_removing():
    removed, replaced = (plan_with(adjacency=a) for a in ("zero_out", "replace_one"))
    with_z, with_half = (p.count_what_holds(z, delta=1e-5).epsilon.value
                         for p, z in ((removed, 2.0), (replaced, 1.0)))  # fmt: skip
    assert with_z < with_half < 2.5 * with_z  # the same noise in units of C


def facts_with(**changes):
    release = {**SOUND, "layer_scales": [1.0], "sampler": "poisson"}
    return {"mechanism": "dp_sgd", "release": release, "noise_multiplier": 1.2, "decay": {},
            "epochs": 2, "steps": 80, "num_examples": 640, "sampler": "poisson",
            "scales_source": "ones", "vocabulary_is_public": True, "seed_is_fixed": False,
            **changes}  # fmt: skip


def test_the_guarantee_of_a_ledger_says_what_is_clipped():
    facts = facts_with()
    plan = Plan.from_facts(facts)
    found = guarantee_of(facts, plan.entries(1.2))
    assert (found.mechanism, found.release.clips) == ("dp_sgd", "example")
    assert found.to_dict()["clips"] == "example" and found.to_dict()["kappa"] == 1
    assert "each utterance clipped" in found.describe()
    assert any("dropout" in text for text in found.not_covered)
    steps = plan.composition(1.2)
    assert found.holds.epsilon == count_released(steps, delta=found.delta).epsilon
    rs = count_with("paper_rs", steps, delta=found.delta)  # κ = 1: as given is as it is
    assert found.as_published.accountant == "paper_rs"
    assert found.as_published.epsilon == rs.epsilon and not rs.is_bound


def test_mechanism_and_release_must_belong_together():
    for mechanism, clips in (("edp_sgd", "example"), ("dp_sgd", "micro_batch")):
        with pytest.raises(UserError, match="clips each"):
            guarantee(
                mechanism=mechanism, release=release_with(clips=clips), noise_multiplier=1.0,
                decay=Decay(), epochs=1, steps=1, num_examples=100, scales_source="ones",
                vocabulary_is_public=True, seed_is_fixed=False,
            )  # fmt: skip


def test_the_published_count_of_shuffled_epochs_is_that_of_algorithm_1():
    plan = Plan(release_with(), Decay("linear", 0.5), 3)
    found = count_published(plan.release, plan.entries(2.0), delta=1e-5)
    rho = sum(0.5 * ((1 + 0.5 * t) / 2.0) ** 2 for t in range(3))
    assert found.accountant == "zcdp_paper"
    assert found.epsilon.value == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e5)))


@pytest.mark.parametrize(
    "z, reason", [(0.0, "the noise multiplier is 0"), (30.0, "sample rate times the noise")]
)
def test_where_the_published_count_says_nothing_it_says_why(z, reason):
    found = plan_with().count_as_published(z, delta=1e-5)
    assert found.epsilon.value is None and reason in found.reasons[0]
    assert plan_with(epochs=0).count_as_published(z, delta=1e-5).epsilon.value == 0


def test_a_ledger_from_before_dp_sgd_is_read_and_goes_on():
    old = {name: value for name, value in SOUND.items() if name != "clips"}
    assert Release(**old).clips == "micro_batch"
    assert Release(**old).to_dict() == {**old, "layer_scales": (1.0, 0.5), "sampler": "shuffle"}
    assert Release(**release_with().to_dict()) == release_with()


def test_noise_that_float32_cannot_add_is_measured_against_a_gradient_of_norm_c():
    """The mean may be as long as C, while the noise falls with the size of the batch."""
    release = release_with(micro_batch_size=1000)
    stddev, c = release.worker_noise_stddev(1e-3)[1], release.max_grad_norm
    assert release.relative_noise(1e-3) == pytest.approx(stddev / (0.5 * c))
    given = {"decay": Decay(), "epochs": 1, "steps": 1, "num_examples": 10_000, "mechanism":
             "dp_sgd", "scales_source": "ones", "vocabulary_is_public": True,
             "seed_is_fixed": False}  # fmt: skip
    vanishing = guarantee(release=release, noise_multiplier=2e-4, **given)  # 1e-7 of C
    assert "float32" in vanishing.holds.reasons[0]
    assert not guarantee(release=release, noise_multiplier=3e-4, **given).holds.reasons
