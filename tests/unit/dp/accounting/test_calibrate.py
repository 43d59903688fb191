"""From a wanted ε to z₀: golden multipliers, closed forms, the way back, noise that is there."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from support.cli import printed
from support.gaussian import gaussian_delta
from support.golden_vectors import cases
from support.made_ledgers import plan_with, poisson_plan
from support.refusals import one_sentence

from edp_mx.dp.accounting import target
from edp_mx.dp.accounting.counting import count_what_holds, least_noise_multiplier
from edp_mx.dp.accounting.coverage import RESOLUTION
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.target import calibrated

DECAYING = {"decay": Decay("linear", 0.1), "epochs": 2, "delta": 1e-5}
ZERO_OUT = {"adjacency": "zero_out", "unit": "utterance"}


def drawn(release=ZERO_OUT, **changes):
    """Of 2 epochs of 10 steps, q = 0.1."""
    steps = {**DECAYING, "steps_per_epoch": 10, "num_records": None, **changes}
    return poisson_plan({"sample_rate": 0.1, **release}, **steps)


def arguments_of(inputs):
    """Of a golden case."""
    decay = Decay(inputs["decay"], inputs["tau"])
    return {
        "decay": decay,
        "num_records": None,
        **{name: inputs[name] for name in ("delta", "epochs")},
    }


@pytest.mark.parametrize("case", cases("calibrate_rf"), ids=lambda case: case["id"])
def test_golden_values_of_shuffled_epochs(case):
    inputs = case["inputs"]
    found = target._multiplier(plan_with(**arguments_of(inputs)), inputs["eps"])
    assert found == pytest.approx(case["expected"]["z0_exact"], rel=case["rtol"])


@pytest.mark.parametrize("case", cases("calibrate_poisson_pld"), ids=lambda case: case["id"])
def test_golden_values_of_poisson_steps(case):
    inputs = case["inputs"]
    steps = {**arguments_of(inputs), "steps_per_epoch": inputs["steps_per_epoch"]}
    found = target._multiplier(
        drawn({**ZERO_OUT, "sample_rate": inputs["q"]}, **steps), inputs["eps"]
    )
    assert found == pytest.approx(case["expected"]["z0"], rel=case["rtol"])


@pytest.mark.parametrize(
    "wanted, adjacency, unit",
    [(0.05, "zero_out", "utterance"), (200.0, "zero_out", "utterance"),
     (2.0, "replace_one", "utterance"), (2.0, "replace_one", "micro_batch")],
)  # fmt: skip
def test_poisson_steps_meet_the_target_and_do_not_exceed_it(wanted, adjacency, unit):
    plan = drawn({"adjacency": adjacency, "unit": unit})
    found = calibrated(plan, target_epsilon=wanted)
    assert epsilon_of(found) <= wanted
    assert epsilon_of(found.with_noise_multiplier(found.noise_multiplier * (1 - 2e-5))) > wanted


def test_full_batches_are_the_closed_form():
    whole = drawn({**ZERO_OUT, "sample_rate": 1.0}, steps_per_epoch=1, epochs=6)
    shuffled = plan_with(**{**DECAYING, "epochs": 6})
    found, exact = (calibrated(each, target_epsilon=2.0) for each in (whole, shuffled))
    assert found.noise_multiplier == pytest.approx(exact.noise_multiplier, rel=1e-5)


@pytest.mark.parametrize("plan", [
    plan_with(decay=Decay("exponential", 10.0), epochs=1000),
    plan_with(delta=1.0, num_records=None),
], ids=["too much", "next to none"])  # fmt: skip
def test_a_target_that_no_double_meets_says_what_to_change(plan):
    said = one_sentence("no noise multiplier", calibrated, plan, target_epsilon=1.0)
    assert "delta, the epochs, the sample rate or the decay rate" in said


@pytest.mark.parametrize("field, value", [
    ("target_epsilon", 0.0), ("target_epsilon", math.inf), ("target_epsilon", math.nan),
    ("epochs", 0), ("steps_per_epoch", 0), ("sample_rate", 0.0),
])  # fmt: skip
def test_impossible_targets_are_refused_by_name(field, value):
    wanted = value if field == "target_epsilon" else 2.0
    release = {"sample_rate": value} if field == "sample_rate" else {}
    changes = {field: value} if field in ("epochs", "steps_per_epoch") else {}
    one_sentence(
        field, calibrated, drawn({**ZERO_OUT, **release}, **changes), target_epsilon=wanted
    )
    if not release:
        one_sentence(field, calibrated, plan_with(**changes), target_epsilon=wanted)


DECAYS = [Decay(), Decay("linear", 0.2), Decay("exponential", 0.05)]


def epsilon_of(plan):
    return count_what_holds(plan, plan.entries()).epsilon.value


@pytest.mark.parametrize("z_a", [None, 1.5], ids=["without alpha", "with alpha"])
@pytest.mark.parametrize("decay", DECAYS, ids=lambda decay: decay.kind)
@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_shuffled_epochs_are_in_closed_form(decay, variant, z_a):
    """One Gaussian of μ² = Σ 1/z_t² + 1/z_a², μ from (ε, δ) by Balle and Wang (2018)."""
    source = "ones" if z_a is None else "dp_release"
    plan = plan_with(
        {"variant": variant},
        decay=decay,
        epochs=7,
        delta=1e-5,
        scales_source=source,
        scales_multiplier=z_a,
    )
    found = calibrated(plan, target_epsilon=8.0)

    mu = brentq(lambda mu: math.log(gaussian_delta(8, mu) / 1e-5), 0.5, 5, xtol=1e-14)
    alone = mu**2 - (0 if z_a is None else z_a**-2)
    z = math.sqrt(sum(decay.factor(t) ** -2 for t in range(7)) / alone)
    weakened = 2 * math.sqrt(8) if variant == "published" else 1
    assert found.noise_multiplier == pytest.approx(weakened * z, rel=2e-7)
    assert epsilon_of(found) <= 8
    less = found.with_noise_multiplier(found.noise_multiplier * (1 - 1e-6))
    assert epsilon_of(less) > 8


@pytest.mark.parametrize("decay, z_a", [*zip(DECAYS, (3.0, 3.0, None)), (DECAYS[2], 3.0)])
def test_poisson_steps_meet_the_target_and_waste_little(decay, z_a):
    source = "ones" if z_a is None else "dp_release"
    plan = poisson_plan(decay=decay, scales_source=source, scales_multiplier=z_a)
    found = calibrated(plan, target_epsilon=2.5)
    assert epsilon_of(found) <= 2.5
    less = found.with_noise_multiplier(found.noise_multiplier * (1 - 1e-5))  # what it is solved to
    assert epsilon_of(less) > 2.5


@settings(max_examples=30)
@given(
    st.floats(0.3, 50),
    st.floats(0.5, 5),
    st.sampled_from(DECAYS),
    st.integers(1, 50),
    st.sampled_from(["replace_one", "zero_out"]),
)
def test_with_alpha_the_target_is_met_or_said_to_be_too_small(
    target, z_a, decay, epochs, adjacency
):
    plan = plan_with(
        {"adjacency": adjacency},
        decay=decay,
        epochs=epochs,
        delta=1e-6,
        scales_source="dp_release",
        scales_multiplier=z_a,
    )
    alone = count_what_holds(plan, plan.scales_entries()).epsilon.value
    if alone >= target:
        one_sentence("the layer scales alone cost", calibrated, plan, target_epsilon=target)
        return
    assert epsilon_of(calibrated(plan, target_epsilon=target)) <= target


def test_alpha_alone_may_exceed_the_target_of_poisson_steps():
    plan = poisson_plan(scales_source="dp_release", scales_multiplier=1.0)
    one_sentence("the layer scales alone cost", calibrated, plan, target_epsilon=0.5)


HUGE = ["--mechanism", "dp_sgd", "--batch-size", "1000000", "--num-examples", "10000000",
        "--sampler", "poisson", "--delta", "1e-8", "--epochs", "1",
        "--set", "privacy.adjacency=zero_out"]  # fmt: skip


def test_the_noise_of_a_target_is_noise_that_float32_adds(capsys):
    """ε of 30 asks for little noise, which a mean over 1,000,000 would make vanish."""

    def run(*options):
        return json.loads(printed(capsys, *options, "--json"))

    found = run("calibrate", "--target-epsilon", "30", *HUGE)
    z = found["noise_multiplier"]
    assert z / 1e6 >= RESOLUTION and z / 1e6 == pytest.approx(RESOLUTION, rel=1e-7)
    assert found["holds"]["epsilon"] < 30
    confirmed = run("account", "--noise-multiplier", repr(z), *HUGE)["holds"]
    assert confirmed["epsilon"] == found["holds"]["epsilon"] and "reason" not in confirmed
    less = run("account", "--noise-multiplier", repr(z * (1 - 1e-6)), *HUGE)["holds"]
    assert less["epsilon"] is None and "float32" in less["reason"]


@pytest.mark.parametrize("decay", DECAYS, ids=lambda decay: decay.kind)
@pytest.mark.parametrize("k", [1, 4])
def test_the_least_noise_is_that_of_the_last_epoch(decay, k):
    plan = plan_with({"micro_batches_per_worker": k}, decay=decay, epochs=9)
    least = plan.with_noise_multiplier(least_noise_multiplier(plan))
    last = least.noise_multiplier_at(8)
    (stddev,) = least.release.worker_noise_stddev(last)
    assert stddev / least.release.max_grad_norm == pytest.approx(RESOLUTION, rel=1e-9)
    assert epsilon_of(least) is not None
    assert epsilon_of(least.with_noise_multiplier(least.noise_multiplier * (1 - 1e-9))) is None
    found = calibrated(plan, target_epsilon=1e12)
    assert found.noise_multiplier >= least.noise_multiplier
    assert found.noise_multiplier == pytest.approx(least.noise_multiplier, rel=2e-7)


def test_another_processor_s_last_digits_give_the_same_noise(monkeypatch):
    """z₀ is solved on every worker and at each resume, and all must find the same."""
    plan = poisson_plan()
    found = calibrated(plan, target_epsilon=2.5)
    solved = target._multiplier(plan, 2.5)
    for last_digits in (-1e-14, 1e-14):
        monkeypatch.setattr(target, "_multiplier", lambda *_, z=solved * (1 + last_digits): z)
        assert calibrated(plan, target_epsilon=2.5) == found
    assert float(f"{found.noise_multiplier:.8g}") == found.noise_multiplier
    monkeypatch.setattr(target, "_multiplier", lambda *_: 0.99 * solved)  # on the wrong side
    assert epsilon_of(calibrated(plan, target_epsilon=2.5)) <= 2.5
