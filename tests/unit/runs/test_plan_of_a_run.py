"""From a configuration to the plan of its run, and what that may spend, written down before."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.cli import printed
from support.made_ledgers import plan_with, poisson_plan
from support.refusals import one_sentence

from edp_mx.config import load_config
from edp_mx.data.origin import ORIGIN, Origin, Read, write_origin
from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS, Declaration
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.accounting.samplers import Sizes
from edp_mx.errors import UserError
from edp_mx.runs.ancestors import brought_along
from edp_mx.runs.plan import plan_for
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import RunSpending
from edp_mx.runtime.distributed import Workers
from edp_mx.training.state import TrainingState

N, WORKERS, SIZE, K = 3200, 2, 16, 2
DECAYS = {"none": 0.0, "linear": 0.2, "exponential": 0.05}
PUBLIC = SimpleNamespace(
    vocabulary=SimpleNamespace(is_public=True), corpus=SimpleNamespace(name="atis")
)
PRIVATE = SimpleNamespace(
    vocabulary=SimpleNamespace(is_public=False), corpus=SimpleNamespace(name="mine")
)


def draws(sampler, k=1):
    """What a worker's share says of the sizes."""
    batch = WORKERS * k * SIZE
    rate = batch / N if sampler == "poisson" else 1.0
    return SimpleNamespace(sizes=Sizes(N, SIZE, k, rate, N // batch))


@pytest.fixture
def configured(tmp_path):
    """A configuration with these settings."""

    def load(*settings):
        (tmp_path / "c.yaml").write_text("training: {epochs: 4}")
        return load_config(tmp_path / "c.yaml", [f"privacy.{setting}" for setting in settings])

    return load


def planned(config, sampler="shuffle", *, prepared=PUBLIC, k=1):
    corpus = prepared.corpus
    return plan_for(
        config, corpus, prepared.vocabulary, draws(sampler, k), WORKERS,
        brought=brought_along(config, corpus),
    )  # fmt: skip


def calibrated_by_command(capsys, *settings, k):
    sizes = ["--num-examples", str(N), "--workers", str(WORKERS), "--json", "--set"]
    more = ["training.epochs=4", f"training.batch_size={WORKERS * k * SIZE}"]
    return json.loads(printed(capsys, "calibrate", *sizes, *more, *settings))


SETTINGS = [
    *(
        ({"mechanism": mechanism, "sampler": sampler}, kind, 1)
        for mechanism, sampler in (("edp_sgd", "shuffle"), ("dp_sgd", "poisson"))
        for kind in DECAYS
    ),
    ({"mechanism": "edp_sgd", "sampler": "poisson"}, "exponential", 1),
    ({"mechanism": "dp_sgd", "sampler": "shuffle"}, "linear", 1),
    ({"variant": "published"}, "none", K),
    ({"variant": "calibrated"}, "none", K),
]


@pytest.mark.parametrize("settings, kind, k", SETTINGS)
def test_the_target_of_a_run_is_that_of_the_command(configured, capsys, settings, kind, k):
    """The same z₀ to the last digit."""
    rate = DECAYS[kind]
    given = [*(f"{key}={value}" for key, value in settings.items()), "target_epsilon=3",
             f"micro_batches_per_worker={k}", f"decay={{kind: {kind}, rate: {rate}}}"]  # fmt: skip
    plan = planned(configured(*given), settings.get("sampler", "shuffle"), k=k)
    assert plan.release.micro_batches_per_worker == k
    command = calibrated_by_command(capsys, *(f"privacy.{setting}" for setting in given), k=k)
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


@pytest.mark.parametrize("count, is_held", [(7202, True), (7203, False)])
def test_a_release_of_alpha_that_float32_cannot_hold_on_the_grid_is_refused(
    configured, count, is_held
):
    """2 workers add up 2 (⌈m/2⌉ / 0.22 + 14) standard deviations, at most 2¹⁵ up to m = 7,202."""
    release = f"scale_release={{noise_multiplier: 0.22, micro_batches: {count}}}"
    hardened = configured("layer_scales=dp_release", release, "noise.gaussian=hardened")
    plain = configured("layer_scales=dp_release", release, "noise.gaussian=plain")
    assert planned(plain, "shuffle").scales_multiplier == 0.22
    if is_held:
        assert planned(hardened, "shuffle").scales_multiplier == 0.22
    else:
        one_sentence("float32 cannot hold their sum", planned, hardened, "shuffle")


@pytest.mark.parametrize("key", ["target_epsilon", "max_epsilon"])
def test_what_makes_epsilon_infinite_refuses_target_and_budget(configured, key):
    cases = {"vocabulary": ([], PRIVATE), "layer_scales": (["layer_scales=first_batch"], PUBLIC)}
    for name, (settings, prepared) in cases.items():
        with pytest.raises(UserError, match=f"privacy.{key}: epsilon is infinite") as caught:
            planned(configured(f"{key}=3", *settings), prepared=prepared)
        assert PRIVATE_INPUTS[name].reason in str(caught.value)
        granted = configured(f"{key}=3", *settings, f"assume_public=[{name}]")
        plan = planned(granted, prepared=prepared)
        assert plan.assumed_public == (name,) and plan.private_inputs == (name,)
        assert "(privacy.assume_public says so)" in guarantee(plan).describe()
    one_sentence("insecure_fixed_seed", planned, configured(f"{key}=3", "insecure_fixed_seed=1"))


def test_lengths_refuse_a_target_too(tmp_path):
    for grant in ("", ", assume_public: [lengths]"):
        path = tmp_path / "c.yaml"
        path.write_text(
            f"training: {{epochs: 4, length_buckets: 4}}\nprivacy: {{target_epsilon: 3.0{grant}}}"
        )
        if grant:
            assert planned(load_config(path)).private_inputs == ("lengths",)
        else:
            one_sentence("made by the lengths of private utterances", planned, load_config(path))


@pytest.mark.parametrize(
    "settings, message",
    [
        (["mechanism=none", "target_epsilon=3"], "target_epsilon must be left out"),
        (["mechanism=none", "max_epsilon=3"], "max_epsilon must be left out"),
        (["noise_multiplier=1", "target_epsilon=3"], "target_epsilon exclude each other"),
        (["delta=1e-6", "delta_mode=paper"], "delta_mode: paper exclude each other"),
    ],
)
def test_what_contradicts_itself_is_refused(configured, settings, message):
    one_sentence(message, configured, *settings)
    assert planned(configured("mechanism=none")).release is None


def test_the_plan_holds_what_the_configuration_says(configured, tmp_path):
    config = configured(
        "noise_multiplier=2.5", "delta_mode=paper", "adjacency=zero_out", "clip_rule=automatic"
    )
    plan = planned(config, prepared=PRIVATE)
    assert (plan.noise_multiplier, plan.delta, plan.delta_mode) == (2.5, 5e-5, "paper")
    assert plan.private_inputs == ("vocabulary",) and not plan.assumed_public
    assert plan.release.adjacency == "zero_out" and plan.release.layer_scales is None
    assert plan.release.clip_rule == "automatic"
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


ALONE = Workers(rank=0, size=1, local_rank=0)
SCALES = (0.5, 1.0)
ALPHA = plan_with(scales_source="dp_release", scales_multiplier=1.0)


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path)


def start(plan, directory):
    return RunSpending(plan, ALONE, directory)


def begun(plan, directory, *, epochs=1):
    """A run that has released some epochs, as it writes it down."""
    spending = start(plan, directory)
    if spending.known_scales() is None:
        spending.complete(SCALES)
        directory.write("layers", [])
    for epoch in range(epochs):
        spending.permit(epoch)
    return spending


def write_checkpoint(spending, directory):
    mark = spending.mark()
    TrainingState(
        epochs=1, seconds=1.0, best_cost=1.0, best_epoch=0, weights={"w": np.zeros(2)},
        optimizer={}, best={}, ledger_size=mark.size, ledger_digest=mark.digest,
    ).write(directory.checkpoint)  # fmt: skip


def test_a_run_writes_its_plan(directory):
    spending = begun(ALPHA, directory, epochs=4)
    ledger = read_ledger(directory.ledger)
    assert ledger.entries == ALPHA.entries()
    assert ledger.plan == spending.plan == ALPHA.with_layer_scales(SCALES)
    assert spending.spent() == spending.planned()
    assert spending.spent().to_dict()["layer_scales"] == list(SCALES)


def test_a_resumed_run_knows_alpha_and_counts_what_it_repeats(directory):
    spending = begun(ALPHA, directory, epochs=2)
    write_checkpoint(spending, directory)
    spending.permit(2)
    resumed = start(ALPHA, directory)
    assert resumed.known_scales() == SCALES
    resumed.complete(SCALES)
    resumed.permit(2)
    assert [entry.what for entry in read_ledger(directory.ledger).entries] == [
        "layer scales", "epoch 0", "epoch 1", "epoch 2", "epoch 2",
    ]  # fmt: skip


def counts(directory):
    return [(e.what, e.event.count) for e in read_ledger(directory.ledger).entries]


def test_stretches_of_poisson_steps_are_counted_when_they_are_taken_and_again_when_repeated(
    directory,
):
    """70 steps: 30 and 30 are written down; killed at, say, 47, the checkpoint after 30 repeats."""
    plan = poisson_plan()
    first = start(plan, directory)
    first.known_scales(), first.complete((1.0,))
    assert [first.permit(0, step, 30) for step in (0, 30)] == [30, 30]
    resumed = start(plan, directory)
    resumed.known_scales(), resumed.complete((1.0,))
    ahead = resumed.planned(0, 30).entries
    assert sum(entry.event.count for entry in ahead) == 60 + 40 + 2 * 70
    assert [resumed.permit(0, step, most) for step, most in ((30, 30), (60, 10))] == [30, 10]
    resumed.permit(1), resumed.permit(2)
    assert counts(directory) == [
        ("epoch 0", 30), ("epoch 0", 30), ("epoch 0", 30), ("epoch 0", 10), ("epoch 1", 70),
        ("epoch 2", 70),
    ]  # fmt: skip
    assert resumed.spent().holds == resumed.planned().holds
    whole = guarantee(plan, [plan.entry(0, 100), plan.entry(1), plan.entry(2)])
    assert resumed.spent().holds.epsilon.value == pytest.approx(whole.holds.epsilon.value)
    # The paper counts an epoch once for each time that it was begun, not for each stretch.
    twice = guarantee(plan, [plan.entry(0), plan.entry(0), plan.entry(1), plan.entry(2)])
    assert resumed.spent().as_published == twice.as_published


def test_a_shuffled_epoch_is_one_line_and_counts_whole_again_when_a_part_of_it_is_repeated(
    directory,
):
    first = begun(ALPHA, directory, epochs=0)
    steps = ALPHA.steps_per_epoch
    assert [first.permit(0, step, 30) for step in (0, 30)] == [30, 30]
    resumed = begun(ALPHA, directory, epochs=0)
    assert resumed.permit(0, 30, 30) == 30 and resumed.permit(0, 60, 30) == steps - 60
    assert counts(directory)[1:] == [("epoch 0", 1), ("epoch 0", 1)]
    twice = [*ALPHA.scales_entries(), ALPHA.entry(0), ALPHA.entry(0)]
    assert resumed.spent().holds == guarantee(resumed.plan, twice).holds


def test_a_budget_counts_the_repeated_steps_and_ends_within_the_epoch(directory):
    plan = poisson_plan()
    limit = count_what_holds(plan, (plan.entry(0), plan.entry(1, 40))).epsilon.value
    plan = dataclasses.replace(plan, max_epsilon=limit * (1 + 1e-7))
    first = start(plan, directory)
    first.known_scales(), first.complete((1.0,))
    first.permit(0, 0, 70), first.permit(1, 0, 20), first.permit(1, 20, 10)
    resumed = start(plan, directory)
    resumed.known_scales(), resumed.complete((1.0,))
    assert resumed.permit(1, 20, 20) == 10 and resumed.permit(1, 30, 20) == 0
    assert sum(count for _, count in counts(directory)) == 110
    begun = [(e.first_step, e.event.count) for e in read_ledger(directory.ledger).entries]
    assert begun == [(0, 70), (0, 20), (20, 10), (20, 10)]


def test_a_run_that_may_stop_early_is_charged_for_the_rest_of_an_epoch_that_it_began(directory):
    plan = dataclasses.replace(poisson_plan(), stops_early=True)
    spent = [plan.entry(0), plan.entry(1, 30)]
    assert guarantee(plan, spent).holds == guarantee(plan, plan.entries()).holds


def test_a_checkpoint_without_its_ledger_is_refused(directory):
    write_checkpoint(begun(ALPHA, directory), directory)
    directory.ledger.unlink()
    for has_checkpoint in (True, False):  # layers.json alone says that the run had begun
        if not has_checkpoint:
            directory.checkpoint.unlink()
        one_sentence("nobody knows what", start, ALPHA, directory)
        assert not directory.ledger.exists()


def test_alpha_beyond_the_budget_is_refused_before_it_is_written(directory):
    """z_a = 1 costs more than 0.5 by itself."""
    spending = start(dataclasses.replace(ALPHA, max_epsilon=0.5), directory)
    one_sentence("that the layer scales cost", spending.known_scales)
    assert read_ledger(directory.ledger).entries == ()


def test_alpha_lost_in_a_crash_is_paid_for_again_or_refused(directory):
    (alpha,) = ALPHA.scales_entries()
    costs = [count_what_holds(ALPHA, n * [alpha]).epsilon.value for n in (1, 2)]
    plan = dataclasses.replace(ALPHA, max_epsilon=0.5 * sum(costs))
    assert start(plan, directory).known_scales() is None  # written down, released, and lost
    one_sentence("that the layer scales cost", start(plan, directory).known_scales)
    assert read_ledger(directory.ledger).entries == (alpha,)


def test_a_budget_that_is_blind_is_refused_before_anything_is_written(directory):
    plan = plan_with(max_epsilon=5.0, private_inputs=["vocabulary"])
    one_sentence("privacy.max_epsilon: epsilon is infinite", start(plan, directory).known_scales)
    assert read_ledger(directory.ledger).entries == ()


def test_the_budget_ends_a_run_in_the_middle_of_a_poisson_epoch(directory):
    plan = poisson_plan()
    limit = count_what_holds(plan, (plan.entry(0), plan.entry(1, 40))).epsilon.value
    spending = begun(dataclasses.replace(plan, max_epsilon=limit * (1 + 1e-7)), directory)
    assert spending.permit(1) == 40
    assert spending.permit(2) == 0
    assert [entry.event.count for entry in read_ledger(directory.ledger).entries] == [70, 40]
    assert spending.spent().holds.epsilon.value <= spending.plan.max_epsilon


def test_without_a_mechanism_nothing_is_written(directory):
    plan = dataclasses.replace(plan_with(), release=None)
    spending = start(plan, directory)
    assert spending.permit(0) == plan.steps_per_epoch and spending.mark() is None
    assert spending.spent().holds.epsilon.is_infinite
    assert not directory.ledger.exists()


def test_a_target_is_refused_for_a_model_that_starts_from_a_run_on_the_same_corpus(tmp_path):
    """Its words and weights have learned from the utterances that ε is to hide."""
    first = tmp_path / "first"
    first.mkdir()
    write_origin(first / ORIGIN, [Origin("first", "none", corpora=(Read("atis"),))])
    (tmp_path / "c.yaml").write_text("training: {epochs: 4}")
    settings = [f"model.start_from={first}", "privacy.mechanism=dp_sgd", "privacy.target_epsilon=8"]
    config = load_config(tmp_path / "c.yaml", settings)
    one_sentence(r"the model starts from a run .*assume_public: \[start\]", planned, config)
    granted = load_config(tmp_path / "c.yaml", [*settings, "privacy.assume_public=[start]"])
    assert planned(granted).private_inputs == ("start",)
    write_origin(first / ORIGIN, [Origin("first", "none", corpora=(Read("snips"),))])
    assert planned(config).private_inputs == ()


def test_what_a_run_was_begun_with_stays_declared_when_it_is_resumed(tmp_path):
    """Since then somebody has called the start public: the run ends with what its head says."""
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    first = Declaration("start", "A, whose training text nobody here knows", is_open=True)
    for said in (first, Declaration("start", "A, declared other than this corpus")):
        plan = plan_with(declarations=(said,))
        spending = start(plan, run)
        spending.complete(spending.known_scales() or [1.0])
    assert spending.permit(0) == 69
    spent = spending.spent()
    assert spent.declarations == [str(first)] and first.said in spent.not_covered
    assert spent == recount(run).spent
