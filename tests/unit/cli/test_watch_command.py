"""`edp-mx watch`: what a run's own files tell while it lasts, and when it ends."""

import json
import re
from contextlib import ExitStack

import pytest
from support.commands import edp_mx
from support.made_ledgers import plan_with, write_plan

from edp_mx.cli import watch
from edp_mx.runs.run_directory import RunDirectory

CONFIG = "name: run\ntraining: {epochs: 3}\nprivacy: {mechanism: edp_sgd}\n"
ROW = {"loss": 1.5, "ser": 40.0, "intent_accuracy": 71.26, "slot_f1": 60.0, "seconds": 20.0,
       "clipped_fraction": 0.5}  # fmt: skip
EPSILONS = {"epsilon_as_published": 3.0, "epsilon_holds": None, "epsilon_holds_if": 2.2e6}
# After one, two and three epochs: 2.0, 4.0 and 6.0 million, if the words were public.
PLAN = plan_with(noise_multiplier=5e-4, epochs=3, private_inputs=("vocabulary",))


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.create("run", CONFIG)
    directory.write("environment", {"num_workers": 2})
    write_plan(directory.ledger, PLAN, scales=[1.0])
    return directory


def add(run, epoch, **more):
    with run.metrics.open("a") as file:
        file.write(json.dumps({"epoch": epoch, **ROW, **EPSILONS, **more}) + "\n")


def test_a_running_job_is_shown_until_it_ends(run, monkeypatch):
    """In a pipe: a line for each epoch, then the whole screen."""
    lock = ExitStack()
    lock.enter_context(run.locked())

    def end():
        run.finish({})
        lock.close()

    steps = iter([lambda: add(run, 1), lambda: None, lambda: [add(run, 2), add(run, 3)], end])
    monkeypatch.setattr(watch.time, "sleep", lambda _: next(steps)())
    said = edp_mx("watch", run.path).stdout
    before, _, after = said.partition(f"{run.path}\nhas ended\n")
    assert [line[2] for line in before.splitlines()] == ["e", "-", "1", "2", "3"]
    assert "] 3 of 3 epochs\n" in after and "on conditions only" in after
    counted = re.findall(r"60\.00 \| +([\d.]+) mn \|", after)
    assert [float(each) for each in counted] == [2, 4, 6]  # the ledger's, not the log's
    assert after.count("71.26") == 3 and "2.2 mn" not in said


def test_one_look_at_a_running_job(run):
    run.workers.mkdir()
    (run.workers / "worker_0.json").write_text('{"progress": "epoch 2 of 3, step 4 of 9"}')
    add(run, 1)
    with run.locked():
        said = edp_mx("watch", run.path, "--once").stdout
    assert "run\nepoch 2 of 3, step 4 of 9\n" in said
    assert "] 1 of 3 epochs, about 40 s left" in said
    assert "| epoch |" in said and max(map(len, said.splitlines()[1:])) <= 80


def test_an_epoch_beyond_the_last_fills_the_bar_and_no_more(run):
    row = {key: value for key, value in ROW.items() if not key.startswith("clipped")}
    run.metrics.write_text(json.dumps({"epoch": 10**9, **row}) + "\n")
    run.ledger.unlink()  # it is trained without privacy
    said = edp_mx("watch", "--once", run.path, code=1).stdout  # it was interrupted
    assert f"[{'=' * 40}] 1000000000 of 3 epochs\n" in said


def test_an_interrupted_run_says_how_it_goes_on(run, monkeypatch):
    monkeypatch.delenv("HOSTS", raising=False)
    said = edp_mx("watch", run.path, code=1).stdout
    assert f"was interrupted; resume it with: NP=2 launch/train.sh --resume {run.path}" in said


def test_programs_get_the_state_and_every_epoch(run):
    add(run, 1)
    add(run, 2, ser=30.0)
    run.finish({})
    said = json.loads(edp_mx("watch", run.path, "--json").stdout)
    assert said["state"] == "has ended"
    assert [(row["epoch"], row["ser"]) for row in said["epochs"]] == [(1, 40.0), (2, 30.0)]
