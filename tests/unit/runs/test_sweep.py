"""A sweep: its file, what Optuna proposes, what is stopped early, and what is not trained again."""

import json
import math
import shutil

import pytest
from support import cli
from support.commands import CONFIGS
from support.gaussian import gaussian_delta
from support.made_ledgers import plan_with
from support.made_ledgers import run_of as run_of_ledger
from support.records import changed, record_of
from support.refusals import one_sentence

from edp_mx.dp.accounting.ledger import LedgerFile, read_ledger
from edp_mx.errors import UserError
from edp_mx.reports.sweep_results import describe_sweep
from edp_mx.runs.record import settings_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep import search
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runs.sweep.config import load_sweep, places_of
from edp_mx.runs.sweep.processes import Ended
from edp_mx.runs.sweep.search import Sweep
from edp_mx.runs.sweep.total_epsilon import total_of
from edp_mx.runs.sweep.trial import Trial, last_sentence

RATES = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007]
FAILS = 0.006
GRID = f"base: [base.yaml]\nparameters: {{training.learning_rate: {RATES}}}\n"
RANDOM = """\
base: [base.yaml]
method: random
seed: 3
trials: {n}
parameters:
  training.learning_rate: {{log_uniform: [1.0e-4, 1]}}
  model.dropout: {{uniform: [0.1, 0.5]}}
  model.num_layers: {{int: [2, 4]}}
  training.batch_size: [16, 32]
"""


def written(tmp_path, text):
    (tmp_path / "base.yaml").write_text("training: {epochs: 9}\n")
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    return file


def ser_of(rate, epoch=9):
    """What the pretended training has after some epochs; no two alike."""
    return abs(rate - 0.0032) + 0.01 / epoch


def row(epoch, ser):
    """A line of `metrics.jsonl`."""
    scores = {"ser": ser, "intent_accuracy": 50.0, "slot_f1": 50.0}
    return {"epoch": epoch, "loss": 1.0, "seconds": 2.0, **scores}


def finish(run, trial, ser):
    scores = {"ser": ser, "intent_accuracy": 0.5, "slot_f1": 0.5}
    run.write("results", {"test": scores})
    run.write("record", changed(
        record_of(), hash=trial.hash, settings=settings_of(trial.config), test=scores,
        validation=scores, seconds=60.0, delta=1e-5,
        holds={"epsilon": 2.0, "log10_epsilon": 0.30103},
    ))  # fmt: skip


@pytest.fixture
def trained(monkeypatch):
    """Trainings are pretended; the list of (settings, epochs) that were made."""
    made = []

    def train_all(trials, run_of, *, is_hopeless, **_):
        for trial in trials:
            rate = trial.config.training.learning_rate
            run = run_of(trial)
            run.path.mkdir(exist_ok=True)
            run.config.write_text("name: base\n")
            run.path.with_name(f"{run.path.name}.log").write_text(
                "[0]<stderr>:epoch 1\n[0]<stderr>:edp-mx train: the training diverged\n[1] gone\n"
            )
            is_stopped = False
            for epoch in range(1, 10):
                with run.metrics.open("a") as file:
                    file.write(json.dumps(row(epoch, 100 * ser_of(rate, epoch))) + "\n")
                is_stopped = is_hopeless(trial, run)
                if is_stopped:
                    break
            made.append((dict(trial.values), epoch))
            if rate != FAILS and not is_stopped:
                finish(run, trial, ser_of(rate))
            yield Ended(trial, run, 2 if rate == FAILS else 130 if is_stopped else 0, 60.0)

    monkeypatch.setattr(search, "train_all", train_all)
    return made


def rates(trained):
    return [values["training.learning_rate"] for values, _ in trained]


def sweep_of(tmp_path, text, *, records=(), **options):
    config, base = load_sweep(written(tmp_path, text))
    return Sweep(config, base, tmp_path / "out", workers=1, records=records, **options)


def run_whole(tmp_path, text, *, runs=math.inf, **options):
    """Calls a sweep until all is done; returns it, and how many calls that took."""
    for calls in range(1, 100):
        sweep = sweep_of(tmp_path, text, **options)
        is_done = sweep.run(Budget(runs=runs))
        sweep.close()
        if is_done:
            return sweep, calls
    raise AssertionError("it does not end")


def test_a_grid_is_tried_whole_in_an_order_that_the_seed_draws(tmp_path, trained):
    text = "base: [base.yaml]\nparameters: {training.learning_rate: [0.1, 0.2], "
    text += "training.seed: [1], training.batch_size: [16, 32, 64]}\n"
    run_whole(tmp_path, text)
    wanted = {(a, 1, b) for a in (0.1, 0.2) for b in (16, 32, 64)}
    tried = [tuple(values.values()) for values, _ in trained]
    assert set(tried) == wanted and len(tried) == 6 and tried != sorted(tried)
    (tmp_path / "two").mkdir()
    run_whole(tmp_path / "two", f"{text}trials: 2\n")
    assert [tuple(values.values()) for values, _ in trained[6:]] == tried[:2]


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_a_sweep_goes_on_without_repeating_what_ended(tmp_path, trained, runs):
    sweep, calls = run_whole(tmp_path, GRID, runs=runs)
    assert calls == math.ceil(7 / runs) and sorted(rates(trained)) == RATES
    said = describe_sweep(sweep.trials, sweep.folder)
    assert f"failed: training.learning_rate={FAILS}" in said and "the training diverged" in said
    best = min((rate for rate in RATES if rate != FAILS), key=ser_of)
    assert f"best: --set training.learning_rate={best}" in said
    assert "validation part of atis, which no ε covers unless" in said
    assert "together, ε = 12 at δ = 6e-05" in said
    assert said.index(f"{100 * ser_of(best):.2f}") < said.index("failed")
    run_whole(tmp_path, GRID, is_retried=True)
    assert len(trained) == 8 and rates(trained)[-1] == FAILS
    sweep, calls = run_whole(tmp_path, GRID)
    assert (len(trained), calls, len(sweep.trials)) == (8, 1, 7)


def test_a_trial_of_a_killed_call_is_the_first_to_go_on(tmp_path, trained, monkeypatch):
    """Wherever the kill strikes the journal; it also leaves its lock, and half a line."""
    whole, begun = search.train_all, []

    def killed(trials, run_of, **options):
        begun.append(next(trials).values)
        raise KeyboardInterrupt
        yield

    for _ in range(2):
        monkeypatch.setattr(search, "train_all", killed)
        sweep = sweep_of(tmp_path, RANDOM.format(n=3))
        with pytest.raises(KeyboardInterrupt):
            sweep.run(Budget())
        sweep.close()
    monkeypatch.setattr(search, "train_all", whole)
    journal = tmp_path / "out" / "study.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.with_name("study.jsonl.lock").symlink_to(journal)
    assert begun[0] == begun[1] and set(begun[0]) == set(
        load_sweep(tmp_path / "sweep.yaml")[0].parameters
    )
    for number in range(2, len(lines) + 1):  # the study, and perhaps a trial with all it sets
        (tmp_path / "out" / "study.jsonl").write_bytes(b"".join(lines[:number]) + b'{"op_code"')
        del trained[:]
        for path in (tmp_path / "out").glob("trial-*/"):
            shutil.rmtree(path)
        sweep, _ = run_whole(tmp_path, RANDOM.format(n=3))
        assert len(trained) == 3 and (number < len(lines) or trained[0][0] == begun[0])


def test_draws_lie_in_their_ranges_and_depend_on_neither_their_number_nor_the_calls(
    tmp_path, trained
):
    run_whole(tmp_path, RANDOM.format(n=5), runs=2)
    few = [values for values, _ in trained]
    (tmp_path / "many").mkdir()
    run_whole(tmp_path / "many", RANDOM.format(n=60))
    many = [values for values, _ in trained[5:]]
    assert few == many[:5] and len({json.dumps(each) for each in many}) == 60
    rate, dropout, layers, batch = (
        [each[key] for each in many]
        for key in ("training.learning_rate", "model.dropout", "model.num_layers",
                    "training.batch_size")
    )  # fmt: skip
    assert all(1e-4 <= each <= 1 and float(f"{each:.4g}") == each for each in rate)
    assert all(0.1 <= each <= 0.5 for each in dropout)
    assert set(layers) == {2, 3, 4} and set(batch) == {16, 32}
    assert 15 <= sum(each < 0.01 for each in rate) <= 45  # half, in the logarithm


def test_tpe_looks_at_the_trials_before(tmp_path, trained):
    """From the eleventh on; random draws of the same seed have ten times the distance."""
    text = "base: [base.yaml]\nmethod: {}\ntrials: 40\nparameters:\n"
    text += "  training.learning_rate: {{uniform: [1.0e-4, 1]}}\n"
    run_whole(tmp_path, text.format("tpe"), runs=9)
    (tmp_path / "random").mkdir()
    run_whole(tmp_path / "random", text.format("random"))
    tpe, drawn = ([ser_of(rate) for rate in rates(trained)[i : i + 40]] for i in (0, 40))
    assert sum(tpe[10:]) < 0.5 * sum(drawn[10:])


def test_halving_stops_what_is_behind_after_the_same_epoch(tmp_path, trained):
    """By its rule: of those that came so far, a trial goes on if it is among the best half."""
    text = f"{GRID}pruner: halving\nfirst_epochs: 2\neta: 2\n"
    sweep, _ = run_whole(tmp_path, text, runs=3)
    rungs, wanted = {epoch: [] for epoch in (2, 4, 8)}, []
    for rate in rates(trained):
        reached = 9
        for epoch, there in rungs.items():
            there.append(ser_of(rate, epoch))
            if ser_of(rate, epoch) > sorted(there)[max(0, len(there) // 2 - 1)]:
                reached = epoch
                break
        wanted.append(reached)
    assert [epochs for _, epochs in trained] == wanted and 2 in wanted and 9 in wanted
    said = describe_sweep(sweep.trials, sweep.folder)
    assert said.count("stopped: training.learning_rate=") == sum(each < 9 for each in wanted)
    assert "after epoch 2 at a SER of" in said
    run_whole(tmp_path, text, is_retried=True)  # what was stopped did not fail
    assert len(trained) - 7 == (wanted[rates(trained).index(FAILS)] == 9)


def test_a_trial_that_is_stopped_early_has_spent_its_whole_plan(tmp_path, trained):
    """One of its four epochs was released: at z = 2 μ is 1/2 after one, and 1 after all."""
    plan = plan_with({"num_workers": 1}, noise_multiplier=2.0, num_records=180, delta=1 / 360)
    text = "base: [base.yaml]\nparameters: {training.learning_rate: [0.9, 0.003]}\nseed: 1\n"
    pretended = search.train_all

    def train_all(*given, **options):
        for ended in pretended(*given, **options):
            if ended.code:
                run_of_ledger(ended.run.path, plan, plan.entries()[:1])
            yield ended

    search.train_all = train_all  # put back by `trained`
    sweep, _ = run_whole(tmp_path, f"{text}pruner: halving\neta: 2\n")
    assert [epochs for _, epochs in trained] == [9, 1] and rates(trained) == [0.003, 0.9]
    (path,) = sweep.folder.glob("trial-*/privacy_ledger.jsonl")
    ledger = read_ledger(path)
    assert ledger.is_stopped and len(ledger.entries) == 1
    total = total_of(sweep.trials, sweep.folder)
    assert total.epsilon == pytest.approx(2.0 + 2.79957, rel=1e-4)  # 2 of the one with a record


def test_what_has_a_record_elsewhere_is_not_trained_and_other_parameters_are_another_study(
    tmp_path, trained
):
    run_whole(tmp_path, GRID)
    other = tmp_path / "other"
    other.mkdir()
    sweep, _ = run_whole(other, GRID, records=[tmp_path / "out", tmp_path / "none"])
    assert rates(trained)[7:] == [FAILS] and len(sweep.trials) == 7
    more = GRID.replace("[0.001,", "[0.0005, 0.001,")
    sweep, _ = run_whole(tmp_path, more)
    assert sorted(rates(trained)[8:]) == [0.0005, FAILS] and len(sweep.trials) == 8


def test_all_that_its_trainings_have_spent_is_composed(tmp_path):
    """μ² is 1/4 for each epoch of z = 2: 5/4 with five of them, 2 with eight, 9/4 with nine."""
    plan = plan_with({"num_workers": 1}, noise_multiplier=2.0, num_records=180, delta=1 / 360)
    scores = {"ser": 0.2, "intent_accuracy": 0.5, "slot_f1": 0.5}
    record = changed(record_of(), hash="a", epochs=4, test=scores, seconds=60.0,
                     validation=scores, holds={"epsilon": 0.01, "log10_epsilon": -2.0},
                     delta=1 / 360)  # fmt: skip
    finished = RunDirectory(run_of_ledger(tmp_path / "trial-a", plan))
    finished.write("record", record)  # what it states is not believed beside its ledger
    diverged = run_of_ledger(tmp_path / "trial-b", plan, plan.entries()[:1])
    trials = [Trial({"seed": 0}, [], hash="a", records=[record]), Trial({"seed": 1}, [], hash="b")]
    assert "2 trainings were made" in (said := describe_sweep(trials, tmp_path))
    total = total_of(trials, tmp_path)  # as if the second was interrupted
    assert f"together, ε = {total.epsilon:.3g} at δ = 0.0028" in said
    assert gaussian_delta(total.epsilon, math.sqrt(5 / 4)) == pytest.approx(1 / 360, rel=1e-4)
    LedgerFile(RunDirectory(diverged).ledger, plan).stop()
    total = total_of(trials, tmp_path)
    assert gaussian_delta(total.epsilon, math.sqrt(2)) == pytest.approx(1 / 360, rel=1e-4)

    run_of_ledger(
        tmp_path / "trial-b-2", plan, plan.entries()[:1]
    )  # an attempt that was interrupted
    elsewhere = changed(record, hash="c", holds={"epsilon": 1.0, "log10_epsilon": 0.0}, delta=1e-4)
    again = changed(elsewhere, date="2030-01-01", holds={"epsilon": 1.5, "log10_epsilon": 0.176})
    trials.append(Trial({"seed": 2}, [], hash="c", records=[elsewhere, again]))  # of other folders
    total = total_of(trials, tmp_path)
    assert total.trainings == 5 and total.delta == pytest.approx(1 / 360 + 2e-4)
    composed = total.epsilon - 1.0 - 1.5
    assert gaussian_delta(composed, 1.5) == pytest.approx(1 / 360, rel=1e-4)

    (tmp_path / "trial-b" / "privacy_ledger.jsonl").write_text("{}\n")
    assert "cannot be said: " in describe_sweep(trials, tmp_path)
    (tmp_path / "trial-b" / "privacy_ledger.jsonl").unlink()
    RunDirectory(diverged).write("environment", {})  # it was trained without privacy
    assert "together, ε = ∞" in describe_sweep(trials, tmp_path)


def ending_as_begun(pretended):
    """Trainings that fail after they had begun, as one that diverges does."""

    def train_all(*given, **options):
        for ended in pretended(*given, **options):
            if ended.code:
                ended.run.write("environment", {})
            yield ended

    return train_all


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_removed_run_still_counts(tmp_path, trained, is_kept):
    """If a record is kept elsewhere by what that states, or else as if it had no privacy."""
    sweep, _ = run_whole(tmp_path, GRID)
    best = min((trial for trial in sweep.trials if not trial.error), key=lambda trial: trial.cost)
    spent = total_of(sweep.trials, sweep.folder)
    records = [shutil.copytree(sweep.folder, tmp_path / "kept")] if is_kept else []
    shutil.rmtree(sweep.folder / f"trial-{best.hash}")
    for is_retried in (False, True):
        sweep, _ = run_whole(tmp_path, GRID, records=records, is_retried=is_retried)
        total = total_of(sweep.trials, sweep.folder)
        assert total.trainings == spent.trainings == 6
        assert total.epsilon == (spent.epsilon if is_kept else math.inf)
        if not is_retried:
            said = describe_sweep(sweep.trials, sweep.folder)
            assert said.count("neither its run nor a record of it is here") == (not is_kept)
    more = GRID.replace("[0.001,", "[0.0005, 0.001,")
    sweep, _ = run_whole(tmp_path, more, records=records)  # other parameters, the same part
    assert is_kept or total_of(sweep.trials, sweep.folder).epsilon == math.inf


def test_a_removed_attempt_that_failed_counts_beside_a_later_one(tmp_path, trained):
    pretended = search.train_all
    search.train_all = ending_as_begun(pretended)  # put back by `trained`
    sweep, _ = run_whole(tmp_path, GRID)
    failed = next(trial for trial in sweep.trials if trial.error)
    shutil.rmtree(sweep.folder / f"trial-{failed.hash}")
    assert total_of(sweep.trials, sweep.folder).trainings == 7
    sweep, _ = run_whole(tmp_path, GRID, is_retried=True)
    assert total_of(sweep.trials, sweep.folder).trainings == 8
    shutil.rmtree(sweep.folder / f"trial-{failed.hash}-2")
    sweep, _ = run_whole(tmp_path, GRID)
    total = total_of(sweep.trials, sweep.folder)
    assert (total.trainings, total.epsilon) == (8, math.inf)


def test_a_training_that_never_began_does_not_count_and_a_killed_one_does(tmp_path, trained):
    sweep, _ = run_whole(tmp_path, GRID)
    failed = next(trial for trial in sweep.trials if trial.error)
    shutil.rmtree(sweep.folder / f"trial-{failed.hash}")  # it had not begun
    assert total_of(sweep.trials, sweep.folder).trainings == 6

    def killed(trials, run_of, **options):
        run_of(next(trials)).path.mkdir()
        raise KeyboardInterrupt
        yield

    search.train_all = killed
    sweep = sweep_of(tmp_path, GRID.replace("[0.001,", "[0.0005, 0.001,"))
    with pytest.raises(KeyboardInterrupt):
        sweep.run(Budget())
    sweep.close()
    (left,) = (
        path for path in sweep.folder.glob("trial-*/") if not (path / "config.yaml").exists()
    )
    left.rmdir()
    total = total_of(sweep.trials, sweep.folder)
    assert (total.trainings, total.epsilon) == (7, math.inf)


def test_nothing_is_begun_after_the_hours(tmp_path, trained):
    assert not sweep_of(tmp_path, GRID).run(Budget(hours=0.0))
    assert not trained


def test_a_run_directory_is_no_folder_of_a_sweep(tmp_path, trained):
    run = RunDirectory(tmp_path / "out")
    run.create("out", "name: out\n")
    before = sorted(run.path.iterdir())
    one_sentence("out is a run directory; name another folder", sweep_of, tmp_path, GRID)
    assert sorted(run.path.iterdir()) == before


@pytest.mark.parametrize("hours", ["0", "-1", "nan"])
def test_hours_are_above_zero(tmp_path, capsys, hours):
    with pytest.raises(SystemExit):
        cli.run("sweep", "sweep.yaml", "--out", tmp_path / "out", "--budget-hours", hours)
    assert f"--budget-hours: it is {hours}; it must be above 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", sorted((CONFIGS / "sweep").glob("*.yaml")), ids=lambda p: p.stem)
def test_each_shipped_sweep_loads_with_what_it_sets(path, tmp_path, monkeypatch):
    config, base = load_sweep(path)
    seen = []

    def train_all(trials, *_, **__):
        seen.extend(next(trials) for _ in range(2))
        return iter(())

    monkeypatch.setattr(search, "train_all", train_all)
    sweep = Sweep(config, base, tmp_path, workers=1, records=[])
    assert not sweep.run(Budget())
    assert all(
        trial.config is not None and set(trial.values) == set(config.parameters) for trial in seen
    )


@pytest.mark.parametrize(
    "line, message",
    [
        ("training.nonsense: [1, 2]", "training.nonsense: there is no such key"),
        ("training.epochs: [0]", "training.epochs must be at least 1"),
    ],
)
def test_a_parameter_that_no_trial_can_have_is_named_by_its_line(line, message, tmp_path):
    file = written(tmp_path, f"base: [base.yaml]\nparameters:\n  {line}\n")
    config, base = load_sweep(file)
    sweep = Sweep(config, base, tmp_path, workers=1, records=[], places=places_of(file))
    with pytest.raises(UserError, match=f"sweep.yaml, line 3: {message}"):
        sweep.run(Budget())


@pytest.mark.parametrize(
    "text, message",
    [
        ("parameters: {a: [1]}", "base must name configuration files"),
        ("base: [base.yaml]", "parameters must name settings"),
        ("base: [no.yaml]\nparameters: {a: [1]}", "there is no"),
        ("base: [base.yaml]\nparameters: {a: {uniform: [0, 1]}}", "a grid has no ranges"),
        ("base: [base.yaml]\nparameters: {a: 3}", "must be a list of values or a range"),
        ("base: [base.yaml]\nparameters: {a: [1, 2020-01-01]}", "2020-01-01 is a date"),
        ("base: [base.yaml]\nmethod: random\nparameters: {a: {log_uniform: [0, 1]}}", "above 0"),
        ("base: [base.yaml]\nmethod: random\nparameters: {a: {int: [0.5, 1]}}", "whole number"),
        ("base: [base.yaml]\nmethod: halving\nparameters: {a: [1]}", "grid, random, tpe"),
        ("base: [base.yaml]\npruner: some\nparameters: {a: [1]}", "none, halving, median"),
    ],
)  # fmt: skip
def test_a_wrong_sweep_is_refused(text, message, tmp_path):
    with pytest.raises(UserError, match=message):
        load_sweep(written(tmp_path, text))


def test_settings_that_are_refused_fail_alone_and_a_typing_error_ends_the_sweep(tmp_path, trained):
    text = "base: [base.yaml]\nparameters: {{training.{}: [0.002, -1]}}\n"
    sweep, _ = run_whole(tmp_path, text.format("learning_rate"))
    assert rates(trained) == [0.002]
    (refused,) = (trial for trial in sweep.trials if trial.error)
    assert refused.values == {"training.learning_rate": -1} and "must be above 0" in refused.error
    with pytest.raises(UserError, match="did you mean learning_rate"):
        sweep_of(tmp_path, text.format("learning_rat")).run(Budget())


def test_the_error_of_a_training_is_its_sentence(tmp_path):
    log = tmp_path / "log"
    assert last_sentence(log) == "it said nothing"
    log.write_text("[1]<stderr>:edp-mx train: no data\nmpirun: something\n")
    assert last_sentence(log) == "no data"
    log.write_text("[0]<stderr>:edp-mx, worker 0: nothing moves\nExit code: 4\n")
    assert last_sentence(log) == "nothing moves"
    log.write_text("Traceback\nMemoryError\n\n")
    assert last_sentence(log) == "MemoryError"
