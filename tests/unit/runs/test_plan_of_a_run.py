"""From a configuration to the plan of its run; the same z₀ as `edp-mx calibrate` finds."""

import json
from types import SimpleNamespace

import pytest
from support.cli import printed

from edp_mx.accounting.coverage import PRIVATE_INPUTS
from edp_mx.accounting.guarantee import guarantee
from edp_mx.config import load_config
from edp_mx.errors import UserError
from edp_mx.runs.plan import plan_for

N, WORKERS, SIZE, K = 3200, 2, 16, 2
DECAYS = {"none": 0.0, "linear": 0.2, "exponential": 0.05}
PUBLIC = SimpleNamespace(
    vocabulary=SimpleNamespace(is_public=True), corpus=SimpleNamespace(name="atis")
)
PRIVATE = SimpleNamespace(
    vocabulary=SimpleNamespace(is_public=False), corpus=SimpleNamespace(name="mine")
)


def draws(sampler, k=1):
    """The sizes that a worker's share says."""
    batch = WORKERS * k * SIZE
    return SimpleNamespace(
        sampler=sampler,
        sample_rate=batch / N if sampler == "poisson" else 1.0,
        steps_per_epoch=N // batch,
        num_units=N,
        micro_batch_size=SIZE,
        micro_batches_per_worker=k,
    )


@pytest.fixture
def configured(tmp_path):
    """A configuration with these settings."""

    def load(*settings):
        (tmp_path / "c.yaml").write_text("training: {epochs: 4}")
        return load_config(tmp_path / "c.yaml", [f"privacy.{setting}" for setting in settings])

    return load


def planned(config, sampler="shuffle", *, prepared=PUBLIC, k=1):
    return plan_for(config, prepared, draws(sampler, k), WORKERS)


def calibrated_by_command(capsys, *options):
    sizes = ["--epochs", "4", "--num-examples", str(N), "--workers", str(WORKERS)]
    sizes += ["--micro-batch-size", str(SIZE)]
    return json.loads(printed(capsys, "calibrate", *sizes, *options, "--json"))


SETTINGS = [  # of a configuration, and the same as options of the command
    *(
        ({"mechanism": mechanism, "sampler": sampler}, kind, 1)
        for mechanism in ("edp_sgd", "dp_sgd")
        for sampler in ("shuffle", "poisson")
        for kind in DECAYS
    ),
    ({"variant": "published"}, "none", K),
    ({"variant": "calibrated"}, "none", K),
]


@pytest.mark.parametrize("settings, kind, k", SETTINGS)
def test_the_target_of_a_run_is_that_of_the_command(configured, capsys, settings, kind, k):
    """The same z₀ to the last digit."""
    rate = DECAYS[kind]
    config = configured(
        "target_epsilon=3", *(f"{key}={value}" for key, value in settings.items()),
        f"micro_batches_per_worker={k}", f"decay={{kind: {kind}, rate: {rate}}}",
    )  # fmt: skip
    plan = planned(config, settings.get("sampler", "shuffle"), k=k)
    assert plan.release.micro_batches_per_worker == k
    options = [part for key, value in settings.items() for part in (f"--{key}", value)]
    options += ["--target-epsilon", "3", "--micro-batches-per-worker", str(k)]
    command = calibrated_by_command(capsys, *options, "--decay", kind, "--decay-rate", str(rate))
    assert plan.noise_multiplier == command["noise_multiplier"]


@pytest.mark.parametrize("sampler", ["shuffle", "poisson"])
def test_the_cost_of_alpha_is_in_the_target(configured, sampler):
    settings = ["target_epsilon=3", f"sampler={sampler}", "layer_scales=dp_release"]
    config = configured(*settings, "scale_release={noise_multiplier: 1.5}")
    plan = planned(config, sampler)
    assert plan.scales_multiplier == 1.5
    alone = planned(configured(f"sampler={sampler}", "target_epsilon=3"), sampler)
    assert alone.scales_multiplier is None
    assert plan.noise_multiplier > alone.noise_multiplier
    assert 3 * (1 - 1e-4) < guarantee(plan).holds.epsilon.value <= 3


@pytest.mark.parametrize("key", ["target_epsilon", "max_epsilon"])
def test_what_makes_epsilon_infinite_refuses_target_and_budget(configured, key):
    cases = {
        "vocabulary": ([], PRIVATE),
        "layer_scales": (["layer_scales=first_batch"], PUBLIC),
    }
    for name, (settings, prepared) in cases.items():
        with pytest.raises(UserError, match=f"privacy.{key}: epsilon is infinite") as caught:
            planned(configured(f"{key}=3", *settings), prepared=prepared)
        assert PRIVATE_INPUTS[name].reason in str(caught.value)
        granted = configured(f"{key}=3", *settings, f"assume_public=[{name}]")
        plan = planned(granted, prepared=prepared)
        assert plan.assumed_public == (name,) and plan.private_inputs == (name,)
        assert "(privacy.assume_public says so)" in guarantee(plan).describe()
    with pytest.raises(UserError, match="insecure_fixed_seed"):
        planned(configured(f"{key}=3", "insecure_fixed_seed=1"))


def test_lengths_refuse_a_target_too(tmp_path):
    for grant in ("", ", assume_public: [lengths]"):
        path = tmp_path / "c.yaml"
        path.write_text(
            f"training: {{epochs: 4, length_buckets: 4}}\nprivacy: {{target_epsilon: 3.0{grant}}}"
        )
        if grant:
            assert planned(load_config(path)).private_inputs == ("lengths",)
        else:
            with pytest.raises(UserError, match="made by the lengths of private utterances"):
                planned(load_config(path))


@pytest.mark.parametrize(
    "settings, message",
    [
        (["mechanism=none", "target_epsilon=3"], "target_epsilon must be left out"),
        (["mechanism=none", "max_epsilon=3"], "max_epsilon must be left out"),
        (["noise_multiplier=1", "target_epsilon=3"], "target_epsilon exclude each other"),
    ],
)
def test_what_contradicts_itself_is_refused(configured, settings, message):
    with pytest.raises(UserError, match=message):
        configured(*settings)
    assert planned(configured("mechanism=none")).release is None


def test_the_plan_holds_what_the_configuration_says(configured, tmp_path):
    config = configured("noise_multiplier=2.5", "delta_mode=paper", "adjacency=zero_out")
    plan = planned(config, prepared=PRIVATE)
    assert (plan.noise_multiplier, plan.delta, plan.delta_mode) == (2.5, 5e-5, "paper")
    assert plan.private_inputs == ("vocabulary",) and not plan.assumed_public
    assert plan.release.adjacency == "zero_out" and plan.release.layer_scales is None
    assert (plan.num_records, plan.steps_per_epoch, plan.epochs) == (N, N // 32, 4)
    path = tmp_path / "d.yaml"
    path.write_text(
        "training: {early_stop_patience: 2, checkpoint: best_on_validation}\n"
        "privacy: {delta: 1.0e-6, max_epsilon: 9.0, mechanism: dp_sgd, unit: user}"
    )
    plan = planned(load_config(path))
    assert plan.stops_early and plan.chooses_checkpoint and plan.max_epsilon == 9.0
    assert (plan.delta, plan.delta_mode) == (1e-6, "value")
    assert plan.record == plan.release.unit == "user"
