"""Where each example is clipped: κ, the noise, the pair of neighbours, and ε beside the field's."""

from dataclasses import replace
from functools import partial

import pytest
from support import releases
from support.refusals import one_sentence

from edp_mx.dp.accounting.accountants import ACCOUNTANTS
from edp_mx.dp.accounting.counting import count_as_published, count_what_holds
from edp_mx.dp.accounting.coverage import MASKS, SUMS
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan

release_with = partial(
    releases.release_with,
    unit="utterance",
    max_grad_norm=0.7,
    layer_scales=(1.0, 0.5),
    adjacency="zero_out",
)


def plan_with(*, z=1.2, epochs=2, steps=40, rate=0.05, decay=None, n=640, **changes):
    drawn = release_with(sampler="poisson", sample_rate=rate, **changes)
    return Plan(drawn, z, decay or Decay(), epochs, 1e-5, steps_per_epoch=steps, num_records=n)


def shuffled_plan(*, z=1.2, epochs=5, decay=None, **changes):
    return Plan(release_with(**changes), z, decay or Decay(), epochs, 1e-5)


def holds(plan):
    return count_what_holds(plan, plan.entries())


def test_the_noise_of_algorithm_1_is_refused():
    one_sentence("the noise of Algorithm 1", release_with, variant="published")


@pytest.mark.parametrize(
    "adjacency, relation", [("zero_out", "ADD_OR_REMOVE_ONE"), ("replace_one", "REPLACE_ONE")]
)
def test_epsilon_is_that_of_dp_accounting(adjacency, relation):
    """Theirs gets the noise and the clipping norm of the sum as they are, without κ."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    z, delta = 0.9, 1e-5
    plan = plan_with(z=z, adjacency=adjacency)
    batch = plan.release.num_workers * plan.release.micro_batch_size
    stddev = plan.release.aggregate_noise_stddev(z)[0]  # of the layer with α = 1
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        stddev,
        sensitivity=plan.release.max_grad_norm / batch,  # of one record's clipped gradient
        sampling_prob=plan.release.sample_rate,
        value_discretization_interval=1e-4,
        neighboring_relation=getattr(dp_accounting.NeighboringRelation, relation),
    ).self_compose(80)
    assert holds(plan).epsilon.value == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-5)


@pytest.mark.parametrize("unit, name", [("utterance", "utterance"), ("user", "user")])
def test_the_guarantee_says_what_is_clipped(unit, name):
    plan = plan_with(unit=unit)
    found = guarantee(plan)
    assert (found.plan.mechanism, found.release.unit) == ("dp_sgd", unit)
    assert found.to_dict()["clips"] == unit and found.to_dict()["kappa"] == 1
    assert f"each {name} clipped" in found.describe()
    assert not any("dropout" in text for text in found.not_covered)  # the loop's proof is exact
    by_ghost = guarantee(replace(plan, clipping="ghost"))
    assert by_ghost.holds == found.holds
    assert {MASKS, SUMS} == set(by_ghost.not_covered) - set(found.not_covered)
    steps = plan.composition(plan.entries())
    assert found.holds.epsilon == ACCOUNTANTS["poisson_pld"].count(steps, delta=plan.delta).epsilon
    rs = ACCOUNTANTS["paper_rs"].count(steps, delta=plan.delta)  # κ = 1: as given is as it is
    assert found.as_published.accountant == "paper_rs"
    assert found.as_published.epsilon == rs.epsilon and not ACCOUNTANTS["paper_rs"].is_bound


@pytest.mark.parametrize(
    "z, reason", [(0.0, "the noise multiplier is 0"), (30.0, "sample rate times the noise")]
)
def test_where_the_published_count_says_nothing_it_says_why(z, reason):
    plan, nothing = plan_with(z=z), plan_with(z=z, epochs=0)
    found = count_as_published(plan, plan.entries())
    assert found.epsilon.value is None and reason in found.reasons[0]
    assert count_as_published(nothing, nothing.entries()).epsilon.value == 0


def test_noise_that_float32_cannot_add_is_measured_against_a_gradient_of_norm_c():
    """The mean may be as long as C, while the noise falls with the size of the batch."""
    release = release_with(micro_batch_size=1000)
    stddev, c = release.worker_noise_stddev(1e-3)[1], release.max_grad_norm
    assert release.relative_noise(1e-3) == pytest.approx(stddev / (0.5 * c))
    vanishing = guarantee(shuffled_plan(z=3.7e-3, micro_batch_size=1000))  # 1.85e-6 < 2^-19 of C
    assert "float32" in vanishing.holds.reasons[0]
    assert not guarantee(shuffled_plan(z=3.9e-3, micro_batch_size=1000)).holds.reasons
