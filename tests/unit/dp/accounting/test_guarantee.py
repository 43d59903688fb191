"""The report: which ε is finite when, what it says, and that it is strict JSON."""

import json
import math
from functools import partial

import pytest
from support import releases
from support.refusals import one_sentence

from edp_mx.dp.accounting.choices import PAPER_PUBLIC, choose_delta
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_epsilon_simple, log_rho_of

release_with = partial(
    releases.release_with, max_grad_norm=0.5, layer_scales=(1.0, 0.25), variant="published"
)


def report(*, num_examples=1000, delta=None, is_papers=False, **changes):
    """A run that has nothing against it, but for `changes`."""
    values = {"release": release_with(), "noise_multiplier": 8.0, "decay": Decay("linear", 0.5),
              "epochs": 5, "steps_per_epoch": 7}  # fmt: skip
    chosen = PAPER_PUBLIC if is_papers else choose_delta(num_examples=num_examples, delta=delta)
    plan = Plan(
        num_records=num_examples,
        delta=chosen,
        delta_mode="paper" if is_papers else "default" if delta is None else "value",
        **{**values, **changes},
    )
    return guarantee(plan)


def test_both_epsilons_against_a_list_of_epochs():
    found = report()
    multipliers = [8.0 / (1 + 0.5 * t) for t in range(5)]
    as_published = log_epsilon_simple(log_rho_of(Event("shuffle", z) for z in multipliers), 5e-4)
    weakened = [z / (2 * math.sqrt(4)) for z in multipliers]  # κ √N
    holds = log_epsilon_exact(log_rho_of(Event("shuffle", z) for z in weakened), 5e-4)
    assert found.plan.delta == 5e-4
    assert found.effective_noise_multipliers == pytest.approx(weakened)
    assert found.as_published.epsilon.log == pytest.approx(as_published)
    assert found.holds.epsilon.log == pytest.approx(holds)
    assert found.holds_if == found.holds and not found.holds.conditions


@pytest.mark.parametrize(
    "changes, words, finite_if",
    [
        ({"private_inputs": ["layer_scales"]}, ["first_batch"], True),
        ({"private_inputs": ["vocabulary"]}, ["vocabulary"], True),
        ({"private_inputs": ["layer_scales", "vocabulary"]}, ["first_batch", "vocabulary"], True),
        ({"seed_is_fixed": True}, ["seed"], False),
        ({"noise_multiplier": 0.0}, ["multiplier is 0"], False),
        (
            {"noise_multiplier": 0.0, "seed_is_fixed": True, "private_inputs": ["vocabulary"]},
            ["multiplier is 0", "seed", "vocabulary"],
            False,
        ),
    ],
)
def test_infinite_epsilon_has_its_reasons(changes, words, finite_if):
    found = report(**changes)
    assert found.holds.epsilon.is_infinite
    for word in words:
        assert any(word in reason for reason in found.holds.reasons)
    assert len(found.holds.reasons) == len(words)
    assert found.holds_if.epsilon.is_infinite is not finite_if
    if finite_if:
        assert found.holds_if.epsilon == report().holds.epsilon
        assert len(found.holds_if.conditions) == len(words)
    assert found.as_published.epsilon.is_infinite is (changes.get("noise_multiplier") == 0.0)


def test_without_a_mechanism_all_is_infinite():
    found = report(release=None)
    for bound in (found.as_published, found.holds, found.holds_if):
        assert bound.epsilon.is_infinite
        assert bound.to_dict()["reason"] == "no privacy mechanism ran"
    assert found.to_dict()["noise_multiplier"] is None
    assert "no privacy mechanism" in found.describe()


@pytest.mark.parametrize("nothing", [{"steps_per_epoch": 0}, {"epochs": 0, "steps_per_epoch": 0}])
def test_no_steps_cost_nothing(nothing):
    found = report(**nothing)
    assert found.as_published.epsilon.value == found.holds.epsilon.value == 0.0
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.describe()


@pytest.mark.parametrize(
    "changes, delta, mode",
    [
        ({}, 5e-4, "default"),
        ({"delta": 1e-6}, 1e-6, "value"),
        ({"is_papers": True, "num_examples": 50_000}, 5e-4, "paper"),
    ],
)
def test_delta(changes, delta, mode):
    found = report(**changes)
    assert (found.plan.delta, found.plan.delta_mode) == (delta, mode)


def test_the_papers_delta_is_warned_of():
    words = "permits publishing one utterance outright"
    assert any(words in text for text in report(is_papers=True, num_examples=4000).warnings)
    assert not any(words in text for text in report().warnings)


def test_steep_decay_is_warned_of():
    assert any("last epoch" in text for text in report(decay=Decay("exponential", 0.6)).warnings)
    assert report(decay=Decay("exponential", 0.5)).warnings == ()  # e² < 10


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"delta": 1e-3}, "1/n"),
        ({"delta": 0.0}, "delta"),
        ({"num_examples": 0}, "num_examples"),
    ],
)
def test_refusals(changes, words):
    one_sentence(words, report, **changes)


def test_the_report_object_has_all_that_the_design_asks_for():
    found = report(noise_multiplier=1e-6, decay=Decay("exponential", 0.5), epochs=1000)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["unit"] == "one utterance"
    expected = {"mechanism": "edp_sgd", "adjacency": "replace_one", "kappa": 2.0,
                "sampler": "shuffle", "num_workers": 4, "micro_batch_size": 8,
                "variant": "published", "scales_source": "ones", "steps": 7000, "delta": 5e-4,
                "one_over_n": 1e-3, "layer_scales": [1.0, 0.25]}  # fmt: skip
    assert {key: written[key] for key in expected} == expected
    assert len(written["effective_noise_multiplier"]) == 1000
    assert written["as_published"]["epsilon"] is None  # 10^445 is beyond a double
    assert written["as_published"]["log10_epsilon"] == pytest.approx(445.758, abs=1e-3)
    assert "smaller than what float32" in written["holds"]["reason"]
    holds = report().to_dict()["holds"]
    assert (holds["accountant"], holds["conversion"]) == ("rf_exact", "exact")
    assert "reason" not in holds


def test_the_view_of_a_single_worker_is_said():
    found = report(release=release_with(variant="calibrated"))
    assert any("noise multiplier is only 4 " in text for text in found.not_covered)  # 8 / √4


@pytest.mark.parametrize("name", sorted(PRIVATE_INPUTS))
def test_what_is_said_to_be_public_is_repeated_and_makes_nothing_finite(name):
    source = {"scales_source": "first_batch"} if name == "layer_scales" else {}
    found = report(private_inputs=[name], assumed_public=[name], **source)
    assert found.holds.epsilon.is_infinite and not found.holds_if.epsilon.is_infinite
    (condition,) = found.holds_if.conditions
    assert condition.endswith("(privacy.assume_public says so)")
    assert "privacy.assume_public says so" in found.describe()
    assert found.to_dict()["assumed_public"] == [name]
    (unsaid,) = report(private_inputs=[name], **source).holds_if.conditions
    assert condition.startswith(unsaid) and "assume_public" not in unsaid


def test_the_real_layer_scales_stand_in_the_report():
    unknown = report(release=release_with(layer_scales=None))
    assert unknown.to_dict()["layer_scales"] is None
    known = guarantee(unknown.plan.with_layer_scales((0.125, 1.0, 0.5)))
    assert known.to_dict()["layer_scales"] == [0.125, 1.0, 0.5]
    assert known.holds == unknown.holds


UNITS = [("micro_batch", "published"), ("utterance", "calibrated"), ("user", "calibrated")]


@pytest.mark.parametrize("unit, variant", UNITS)
def test_several_utterances_and_other_models_stand_in_every_report(unit, variant):
    found = report(release=release_with(unit=unit, variant=variant))
    person = "who speaks under several user names" if unit == "user" else "with several utterances"
    for said in (found.describe(), "\n".join(found.to_dict()["not_covered"])):
        assert f"a person {person}" in " ".join(said.split())
        assert "other models trained on the same data" in " ".join(said.split())
    one = "user" if unit == "user" else "utterance"
    assert found.to_dict()["unit"] == f"one {one}"
    assert found.describe().startswith(f"Privacy of one {one}")
