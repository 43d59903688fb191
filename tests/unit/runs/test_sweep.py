"""A sweep: its file, its draws, its rungs and what it does not train again."""

import json
import math

import pytest
from support.commands import CONFIGS, ROOT
from support.gaussian import gaussian_delta
from support.made_ledgers import plan_with, run_of
from support.records import record_of

from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.errors import UserError
from edp_mx.reports.sweep_table import describe_sweep
from edp_mx.runs.record import settings_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep import trainings
from edp_mx.runs.sweep.config import load_sweep
from edp_mx.runs.sweep.processes import Ended
from edp_mx.runs.sweep.run import Sweep
from edp_mx.runs.sweep.spent import spent_by
from edp_mx.runs.sweep.trainings import Limits
from edp_mx.runs.sweep.trial import Trial, last_sentence
from experiments.tables.paper import DECAY_RATES

RATES = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007]
GRIDS = ROOT / "experiments" / "grids"
SHIPPED = [*sorted((CONFIGS / "sweep").glob("*.yaml")), *sorted(GRIDS.glob("*.yaml"))]
HALVING = """\
base: [base.yaml]
method: random
trials: 7
parameters: {training.learning_rate: [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007]}
halving: {rungs: [1, 2, 4], eta: 2}
"""


def written(tmp_path, text):
    (tmp_path / "base.yaml").write_text("training: {epochs: 3}\n")
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    return file


def ser_of(rate, epochs):
    """What the pretended training gives; no two alike."""
    return abs(rate - 0.0032 - 0.0005 * epochs)


@pytest.fixture
def trained(monkeypatch):
    """Trainings are pretended; the list of (learning rate, epochs) that were made."""
    made = []

    def train_all(trials, run_of, **_):
        for trial in trials:
            training = trial.config.training
            made.append((training.learning_rate, training.epochs))
            run = run_of(trial)
            run.path.mkdir()
            run.config.write_text("name: base\n")
            ser = ser_of(*made[-1])
            scores = {"ser": ser, "intent_accuracy": 0.5, "slot_f1": 0.5}
            fails = training.learning_rate == 0.006
            run.path.with_name(f"{run.path.name}.log").write_text(
                "[0]<stderr>:epoch 1\n[0]<stderr>:edp-mx train: the training diverged\n[1] gone\n"
            )
            if not fails:
                run.write("results", {"test": scores})
                run.write("record", {
                    **record_of(), "hash": trial.hash, "settings": settings_of(trial.config),
                    "test": scores, "validation": scores, "seconds": 60.0, "delta": 1e-5,
                    "holds": {"epsilon": 2.0, "log10_epsilon": 0.30103},
                })  # fmt: skip
            yield Ended(trial, run, 2 if fails else 0, 60.0)

    monkeypatch.setattr(trainings, "train_all", train_all)
    return made


def sweep_of(tmp_path, text, **options):
    config, base = load_sweep(written(tmp_path, text))
    return Sweep(config, base, tmp_path / "out", workers=1, records=[], **options)


def test_successive_halving_trains_what_enumeration_says(tmp_path, trained):
    sweep = sweep_of(tmp_path, HALVING.replace("random", "halving"))
    assert sweep.run(Limits())
    alive, wanted = RATES, []
    for epochs in (1, 2, 4):
        wanted += [(rate, epochs) for rate in alive]
        ranked = sorted((r for r in alive if r != 0.006), key=lambda r: ser_of(r, epochs))
        alive = ranked[: len(alive) // 2]
    assert [len([1 for _, e in wanted if e == n]) for n in (1, 2, 4)] == [7, 3, 1]
    assert sorted(trained) == sorted(wanted)


def test_a_sweep_goes_on_without_repeating_what_ended(tmp_path, trained):
    text = HALVING.replace("random", "halving")
    calls = 0
    while not (sweep := sweep_of(tmp_path, text)).run(Limits(runs=2)):
        calls += 1
        sweep.close()
    assert calls == 5 and len(trained) == len(set(trained)) == 11  # 2 · 5 + 1
    said = describe_sweep(sweep.trials, sweep.folder)
    assert "failed: training.learning_rate=0.006" in said and "the training diverged" in said
    best = min(((rate, e) for rate, e in trained if rate != 0.006), key=lambda t: ser_of(*t))
    assert f"best: --set training.learning_rate={best[0]} training.epochs={best[1]}" in said
    assert "validation part of atis, which no ε covers unless" in said
    assert "their ε add up to 20 at δ = 0.0001" in said
    assert said.index(f"{100 * ser_of(*best):.2f}") < said.index("failed")
    sweep.close()
    again = sweep_of(tmp_path, text, is_retried=True)
    again.run(Limits())
    assert len(trained) == 12 and trained[-1] == (0.006, 1)


def test_all_that_its_trainings_have_spent_adds_up(tmp_path):
    """With one epoch of z = 2 μ is 1/2, with all four it is 1: at δ = 1/360 1.1745 and 2.7996."""
    plan = plan_with({"num_workers": 1}, noise_multiplier=2.0, num_records=180, delta=1 / 360)
    for mu, epsilon in ((0.5, 1.17454), (1.0, 2.79957)):
        assert gaussian_delta(epsilon, mu) == pytest.approx(1 / 360, rel=1e-4)
    scores = {"ser": 0.2, "intent_accuracy": 0.5, "slot_f1": 0.5}
    record = {**record_of(), "hash": "a", "epochs": 4, "test": scores, "seconds": 60.0,
              "validation": scores, "holds": {"epsilon": 0.01, "log10_epsilon": -2.0},
              "delta": 1 / 360}  # fmt: skip
    finished = RunDirectory(run_of(tmp_path / "trial-a", plan))
    finished.write("record", record)  # what it states is not believed beside its ledger
    diverged = run_of(tmp_path / "trial-b", plan, plan.entries()[:1])
    trials = [Trial({"seed": 0}, [], hash="a", records=[record]), Trial({"seed": 1}, [], hash="b")]
    assert "2 trainings were made" in (said := describe_sweep(trials, tmp_path))
    assert "their ε add up to 3.97 at δ = 0.0056" in said  # if it was interrupted
    LedgerFile(RunDirectory(diverged).ledger, plan).stop()
    assert "their ε add up to 5.6 at δ = 0.0056" in describe_sweep(trials, tmp_path)

    run_of(tmp_path / "trial-b-2", plan, plan.entries()[:1])  # an attempt that was interrupted
    elsewhere = {**record, "hash": "c", "holds": {"epsilon": 1.0}, "delta": 1e-4}
    again = {**elsewhere, "date": "2030-01-01", "holds": {"epsilon": 1.5}}
    trials.append(Trial({"seed": 2}, [], hash="c", records=[elsewhere, again]))  # of other folders
    spent = spent_by(trials, tmp_path)
    assert [round(each.epsilon, 3) for each in spent] == [2.8, 2.8, 1.175, 1.0, 1.5]
    assert sum(each.delta for each in spent) == pytest.approx(3 / 360 + 2e-4)

    (tmp_path / "trial-b" / "privacy_ledger.jsonl").write_text("{}\n")
    assert "cannot be said: " in describe_sweep(trials, tmp_path)
    (tmp_path / "trial-b" / "privacy_ledger.jsonl").unlink()
    RunDirectory(diverged).write("environment", {})  # it was trained without privacy
    assert "add up to ∞" in describe_sweep(trials, tmp_path)


def test_nothing_is_begun_after_the_hours(tmp_path, trained):
    assert not sweep_of(tmp_path, HALVING).run(Limits(hours=0.0))
    assert not trained


def test_draws_lie_in_their_ranges_and_do_not_depend_on_their_number(tmp_path):
    text = """\
base: [base.yaml]
method: random
seed: 3
trials: {n}
parameters:
  a: {{uniform: [0.1, 0.5]}}
  b: {{log_uniform: [1.0e-4, 1]}}
  c: {{int: [2, 4]}}
  d: [x, y]
"""
    few, many = (load_sweep(written(tmp_path, text.format(n=n)))[0].proposals() for n in (5, 200))
    assert few == many[:5] and len(many) == 200
    assert all(0.1 <= each["a"] <= 0.5 and 1e-4 <= each["b"] <= 1 for each in many)
    assert {each["c"] for each in many} == {2, 3, 4} and {each["d"] for each in many} == {"x", "y"}
    assert 60 <= sum(each["b"] < 0.01 for each in many) <= 140  # half, in the logarithm
    assert json.loads(json.dumps(many)) == many


def test_a_grid_has_all_combinations(tmp_path):
    text = "base: [base.yaml]\nparameters: {a: [1, 2], b: [x], c: [true, false]}\n"
    proposals = load_sweep(written(tmp_path, text))[0].proposals()
    assert proposals == [{"a": a, "b": "x", "c": c} for a in (1, 2) for c in (True, False)]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_each_shipped_sweep_loads_with_what_it_sets(path):
    config, base = load_sweep(path)
    proposals = config.proposals()
    for values in proposals[:: len(proposals) // 20 + 1]:
        assert Trial.of(values, base, workers=1, cost=1).error is None


@pytest.mark.parametrize("decay, number", [("none", 42), ("linear", 336), ("exponential", 336)])
def test_the_paper_s_grid_is_whole(decay, number):
    config, base = load_sweep(GRIDS / f"paper_{decay}.yaml")
    tried = config.parameters
    assert tried["privacy.max_grad_norm"] == [0.1, 0.25, 0.5, 1, 2, 5]
    assert tried["privacy.noise_multiplier"] == [10.0**power for power in range(-6, 1)]
    assert tried.get("privacy.decay.rate", [0.0]) == DECAY_RATES[decay]
    proposals = config.proposals()
    assert len(proposals) == number == math.prod(map(len, tried.values()))
    trial = Trial.of(proposals[0], base, workers=1)
    assert trial.config.privacy.decay.kind == decay
    assert trial.config.privacy.variant == "published"
    small, _ = load_sweep(GRIDS / f"small_{decay}.yaml")
    kept_as_made = {"privacy.layer_scales_unit": ["largest"]}  # as in results/grids
    assert small.parameters == {**tried, **kept_as_made} and len(small.proposals()) == 42
    assert trial.config.privacy.layer_scales_unit == "norm"


@pytest.mark.parametrize(
    "text, message",
    [
        ("parameters: {a: [1]}", "base must name configuration files"),
        ("base: [base.yaml]", "parameters must name settings"),
        ("base: [no.yaml]\nparameters: {a: [1]}", "there is no"),
        ("base: [base.yaml]\nparameters: {a: {uniform: [0, 1]}}", "a grid has no ranges"),
        ("base: [base.yaml]\nparameters: {a: 3}", "must be a list of values or a range"),
        ("base: [base.yaml]\nmethod: random\nparameters: {a: {log_uniform: [0, 1]}}", "above 0"),
        ("base: [base.yaml]\nmethod: random\nparameters: {a: {int: [0.5, 1]}}", "whole number"),
        ("base: [base.yaml]\nmethod: halving\nparameters: {a: [1]}", "halving.rungs must have"),
        ("base: [base.yaml]\nmethod: halving\nparameters: {training.epochs: [1]}\n"
         "halving: {rungs: [1, 2]}", "halving sets it by rung"),
        ("base: [base.yaml]\nparameters: {a: [1]}\nhalving: {rungs: [2, 1]}", "must rise"),
    ],
)  # fmt: skip
def test_a_wrong_sweep_is_refused(text, message, tmp_path):
    with pytest.raises(UserError, match=message):
        load_sweep(written(tmp_path, text))


def test_settings_that_are_refused_fail_alone_and_a_typing_error_ends_the_sweep(tmp_path, trained):
    text = "base: [base.yaml]\nparameters: {{training.{}: [0.002, -1]}}\n"
    sweep = sweep_of(tmp_path, text.format("learning_rate"))
    assert sweep.run(Limits()) and trained == [(0.002, 3)]
    assert "must be above 0" in sweep.trials[1].error
    sweep.close()
    with pytest.raises(UserError, match="did you mean learning_rate"):
        sweep_of(tmp_path, text.format("learning_rat")).run(Limits())


def test_the_error_of_a_training_is_its_sentence(tmp_path):
    log = tmp_path / "log"
    assert last_sentence(log) == "it said nothing"
    log.write_text("[1]<stderr>:edp-mx train: no data\nmpirun: something\n")
    assert last_sentence(log) == "no data"
    log.write_text("[0]<stderr>:edp-mx, worker 0: nothing moves\nExit code: 4\n")
    assert last_sentence(log) == "nothing moves"
    log.write_text("Traceback\nMemoryError\n\n")
    assert last_sentence(log) == "MemoryError"
