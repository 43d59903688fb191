"""Runs that were interrupted: what is left of them, and what resuming costs."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from support.made_ledgers import plan_with, poisson_plan, write_plan

from edp_mx.config import dump_config, read_dumped
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.checkpoint_file import write_checkpoint
from edp_mx.errors import UserError
from edp_mx.runs.interrupted import after_interruption, has_begun, make_way, resumes_with
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import command
from edp_mx.runs.sweep.trial import Trial, folder_of

CONFIG = dump_config(
    read_dumped(
        "name: run\ntraining: {epochs: 4}\nprivacy: {mechanism: edp_sgd, target_epsilon: 2.5}\n"
    )
)


def made(tmp_path, plan=None, entries=(), done=None):
    """A run with a configuration, a ledger and a checkpoint, as far as they are given."""
    run = RunDirectory(tmp_path / "run")
    run.create("run", CONFIG)
    if plan is not None:
        write_plan(run.ledger, plan, entries)
    if done is not None:
        run.write("environment", {"num_workers": 2})
        write_checkpoint(run.checkpoint, {"facts/epochs": np.array(done)})
    return run


@pytest.mark.parametrize(
    ("begun", "done", "words"),
    [
        (3, 2, "goes on after epoch 2 of 4 and repeats 69 steps of epoch 3, which count twice"),
        (2, 2, "goes on after epoch 2 of 4; in the end"),
        (1, 0, "begins anew and repeats 69 steps of epoch 1"),
    ],
)
def test_resuming_says_what_it_repeats_and_what_epsilon_will_be(tmp_path, begun, done, words):
    plan = plan_with()
    run = made(tmp_path, plan, plan.entries()[:begun], done)
    entries = (*plan.entries()[:begun], *plan.entries()[done:])
    ahead = guarantee(plan, entries).holds.epsilon.short()
    said = resumes_with(run)
    assert words in said and said.endswith(f"in the end ε will be {ahead} (target 2.5)")


def test_steps_drawn_by_poisson_that_a_budget_cut_off_are_counted(tmp_path):
    plan = poisson_plan(epochs=4, max_epsilon=100.0)
    run = made(tmp_path, plan, [plan.entry(0), plan.entry(1, 40)], 1)
    assert "repeats 40 steps of epoch 2" in resumes_with(run)


def test_a_budget_counts_a_later_epoch_that_was_repeated_before(tmp_path):
    """It goes on after epoch 1, though epoch 3 was done and begun again: 90 more steps fit."""
    plan = poisson_plan()
    spent = [*plan.entries(), plan.entry(2, 30)]
    ahead = guarantee(plan, [*spent, plan.entry(1), plan.entry(2, 20)]).holds.epsilon
    plan = dataclasses.replace(plan, max_epsilon=ahead.value * (1 + 1e-7))
    said = resumes_with(made(tmp_path, plan, spent, 1))
    assert said.endswith(f"in the end ε will be {ahead.short()} (target 2.5)")


def test_the_command_has_the_workers_of_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("HOSTS", raising=False)
    run = made(tmp_path, done=1)
    assert run.resume_command() == f"NP=2 launch/train.sh --resume {run.path}"
    assert RunDirectory(Path("a b")).resume_command(1) == "edp-mx train --resume 'a b'"
    assert run.resume_command(1) == f"edp-mx train --resume {run.path}"
    lines = list(after_interruption(run, run.resume_command(), is_new=True))
    assert lines[0].endswith(run.resume_command()) and "after epoch 1 of 4" in lines[1]
    assert not list(after_interruption(run, "", is_new=True))  # of an audit, which none resumes
    run.finish({})
    assert not list(after_interruption(run, run.resume_command(), is_new=True))


def test_one_step_is_repeated_and_counts(tmp_path):
    said = resumes_with(made(tmp_path, poisson_plan(), [poisson_plan().entry(0, 1)], 0))
    assert " and repeats 1 step of epoch 1, which counts twice in ε" in said


def test_a_start_that_failed_leaves_nothing_in_the_way(tmp_path):
    run = made(tmp_path, plan_with())
    run.log(0).write_text("")
    (run.path / ".split.json.0a1b2c3d").write_text("torn")  # it was killed
    assert not has_begun(run)
    make_way(run)
    assert not run.path.exists()
    run.create("run", CONFIG)
    assert "was removed" in " ".join(after_interruption(run, "", is_new=True))
    assert not run.path.exists()


def test_what_was_released_or_is_not_ours_stays(tmp_path):
    plan = plan_with()
    run = made(tmp_path, plan, plan.entries()[:1])
    make_way(run)
    assert has_begun(run) and run.ledger.exists()
    run.ledger.unlink()
    run.config.write_text("name: mine\n")  # by hand: no start has written it
    make_way(run)
    assert run.config.exists() and (run.path / "README.md").exists()
    run.config.write_text(CONFIG)
    (run.path / "precious").write_text("mine")
    make_way(run)
    assert (run.path / "precious").exists()
    with pytest.raises(UserError, match="is not empty"):
        run.create("run", CONFIG)


def test_no_two_processes_train_into_one_folder(tmp_path):
    run = made(tmp_path, done=1)
    refused = pytest.raises(UserError, match="another process trains into it")
    assert not run.is_in_use()
    with run.locked():
        assert run.is_in_use()
        with refused, run.locked():
            pass
    assert not run.is_in_use()
    with run.locked():
        assert json.loads((run.path / "environment.json").read_text())


@pytest.mark.parametrize(
    "left, folder, first",
    [
        ("a ledger", "trial-0f", "--resume"),  # what was released counts when it goes on
        ("an environment", "trial-0f", "--resume"),
        ("a configuration", "trial-0f", "config.yaml"),  # nothing was released: begun anew
        ("a torn configuration", "trial-0f-2", "config.yaml"),
        ("results", "trial-0f-2", "config.yaml"),
        ("something else", "trial-0f-2", "config.yaml"),
    ],
)
def test_a_trial_that_was_killed_goes_on_in_its_folder(left, folder, first, tmp_path):
    plan, run = plan_with(), RunDirectory(tmp_path / "trial-0f")
    run.create("run", CONFIG)
    if left == "a ledger":
        write_plan(run.ledger, plan, plan.entries()[:1])
    elif left == "an environment" or left == "results":
        run.write("environment", {})
        run.finish({}) if left == "results" else None
    elif left == "a torn configuration":
        run.config.rename(run.path / ".config.yaml.0a1b2c3d")
    elif left == "something else":
        (run.path / "precious").write_text("mine")
    trial = Trial({}, [tmp_path / "config.yaml"], hash="0f")
    found = folder_of(trial, tmp_path)
    assert found.path.name == folder and run.ledger.exists() is (left == "a ledger")
    assert Path(command(trial, found, 1)[4]).name == first
