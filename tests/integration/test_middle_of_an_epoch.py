"""A run that is interrupted within an epoch goes on from there, as if nothing had been."""

import json
import os
import signal
import sys
import time

import numpy as np
import pytest
from support import commands
from support.commands import (
    CONFIGS,
    LANGUAGE_MODEL,
    QUICKSTART,
    edp_mx,
    finish,
    interrupted,
    lines_of,
    read,
    rows,
    wait_for,
    weights,
)
from support.workers import PATIENCE

from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.checkpoint_file import checkpoints, place_of
from edp_mx.runtime.processes import launcher

DP_SGD = CONFIGS / "mechanism" / "dp_sgd.yaml"
SHORT = ["data.size=400", "training.epochs=3", "model.dropout=0.3", "training.batch_size=16",
         "training.checkpoints.every_steps=3"]  # fmt: skip
# Everything that a resumed run could forget: moments, warm-up, averages, and what selects.
RICH = ["training.optimizer=adam", "training.schedule.kind=linear",
        "training.schedule.warmup_fraction=0.3", "training.average.kind=ema",
        "training.checkpoint=best_on_validation"]  # fmt: skip
# Poisson draws and masks of a known key, so that two runs have the same; and no noise.
POISSON = ["privacy.target_epsilon=null", "privacy.noise_multiplier=0",
           "privacy.insecure_fixed_seed=3", "training.batch_size=16"]  # fmt: skip
CLC = [*commands.TINY, *RICH]
KINDS = {
    "sgd": ([QUICKSTART], CLC),
    "poisson": ([QUICKSTART, DP_SGD], [*CLC, *POISSON]),
    "loop": ([QUICKSTART, DP_SGD], [*CLC, *POISSON, "privacy.clipping=loop"]),
    "language model": ([LANGUAGE_MODEL, DP_SGD], [*RICH, *POISSON]),
}
NOISY = ["privacy.target_epsilon=null", "privacy.noise_multiplier=2", "training.batch_size=16"]


def training(run, configs, settings):
    return ["train", *configs, "--run", run, "--set", *SHORT, *settings]


def without_times(run):
    times = ("seconds", "processor_seconds", "clock_seconds")
    return [{k: v for k, v in row.items() if k not in times} for row in rows(run)]


def assert_same(one, other):
    """Two runs have ended with the same weights, logs and scores, to the last bit."""
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    assert without_times(one) == without_times(other)
    assert read(one, "results")["test"] == read(other, "results")["test"]


@pytest.mark.parametrize(
    "kind", ["sgd", "poisson", "language model", pytest.param("loop", marks=pytest.mark.slow)]
)
def test_without_noise_it_ends_bit_for_bit_as_the_uninterrupted_one(tmp_path, kind):
    """11 steps per epoch: interrupted in the second after 8 of them, resumed after 6."""
    began = time.process_time()
    edp_mx(*training(tmp_path / "whole", *KINDS[kind]))
    busy = [row["processor_seconds"] for row in rows(tmp_path / "whole")]
    assert min(busy) > 0 and sum(busy) < time.process_time() - began
    run = tmp_path / "run"
    errors = interrupted(*training(run, *KINDS[kind]), after=11 + 8).stderr
    assert place_of(run / "checkpoint.npz") == (1, 6)
    assert "it goes on after step 6 of epoch 2 of 3" in errors
    assert len(checkpoints(run / "checkpoint.npz")) == 2
    edp_mx("train", "--resume", run)
    assert_same(run, tmp_path / "whole")
    assert [row["processor_seconds"] is None for row in rows(run)] == [False, True, False]
    assert not list(run.glob("checkpoint*"))


@pytest.mark.slow
def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path):
    edp_mx(*training(tmp_path / "whole", *KINDS["sgd"]))
    run = tmp_path / "run"
    interrupted(*training(run, *KINDS["sgd"]), after=11 + 8)
    content = bytearray((run / "checkpoint.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (run / "checkpoint.npz").write_bytes(content)
    errors = " ".join(edp_mx("train", "--resume", run).stderr.split())  # without line ends
    assert "checksum is wrong; checkpoint-1.npz, the one before, is used" in errors
    assert "goes on after step 3 of epoch 2" in errors
    assert_same(run, tmp_path / "whole")


def test_if_all_checkpoints_are_damaged_the_run_does_not_go_on(tmp_path):
    run = tmp_path / "run"
    interrupted(*training(run, *KINDS["sgd"]), after=8)
    for path in checkpoints(run / "checkpoint.npz"):
        path.write_bytes(path.read_bytes()[:1000])
    errors = edp_mx("train", "--resume", run, code=2).stderr
    assert "nothing whole to resume from" in errors and errors.count("\n") == 1


@pytest.mark.parametrize("sampler", ["poisson", "shuffle"])
def test_with_noise_the_steps_that_are_repeated_count_twice(tmp_path, sampler):
    """Interrupted after 8 steps of the second epoch, resumed after 6 of its 11."""
    run = tmp_path / "run"
    noisy = [*commands.TINY, *NOISY, f"privacy.sampler={sampler}"]
    interrupted(*training(run, [QUICKSTART, DP_SGD], noisy), after=11 + 8)
    errors = " ".join(edp_mx("train", "--resume", run).stderr.split())  # without line ends
    repeated = {"poisson": 3, "shuffle": 5}[sampler]  # of those that were written down, at most
    assert f"repeats {repeated} steps of epoch 2, which count twice in ε" in errors
    ledger = read_ledger(run / "privacy_ledger.jsonl")
    counted = [sum(e.event.count for e in ledger.entries if e.epoch == t) for t in range(3)]
    assert counted == {"poisson": [11, 11 + 3, 11], "shuffle": [1, 2, 1]}[sampler]
    plan = ledger.plan
    more = plan.entry(1, 3)  # three Poisson steps, or a whole shuffled epoch
    holds = guarantee(plan, [*plan.entries(), more]).holds.epsilon.value
    assert read(run, "privacy")["holds"]["epsilon"] == pytest.approx(holds)
    assert holds > guarantee(plan).holds.epsilon.value
    assert rows(run)[-1]["epsilon_holds"] == pytest.approx(holds)


def kill_in_the_middle(process, run, epoch=1):
    """Kills all workers with -9 while their last checkpoint is one of within an epoch."""
    deadline = time.monotonic() + PATIENCE
    wait_for(lambda: lines_of(run / "metrics.jsonl") >= epoch, process)
    while True:
        pids = [json.loads(file.read_text())["pid"] for file in (run / ".workers").glob("*.json")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        place = place_of(run / "checkpoint.npz")
        is_there = place[0] >= epoch and place[1] > 0
        number = signal.SIGKILL if is_there else signal.SIGCONT
        for pid in pids:
            os.kill(pid, number)
        if is_there:
            break
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    return place


def of_two_workers(*arguments):
    """`edp-mx train` with two workers, in the background."""
    return commands.start(*launcher(2), sys.executable, "-m", "edp_mx", "train", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sgd", "poisson", "language model"])
def test_two_workers_that_are_killed_end_bit_for_bit_as_the_uninterrupted_ones(tmp_path, kind):
    more = ["training.epochs=4", "data.size=800"]

    def start(run):
        return of_two_workers(*training(run, *KINDS[kind])[1:], *more)

    finish(start(tmp_path / "whole"))
    run = tmp_path / "run"
    assert kill_in_the_middle(start(run), run)[0] >= 1
    finish(of_two_workers("--resume", run))
    assert_same(run, tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("config", [QUICKSTART, LANGUAGE_MODEL], ids=["CLC", "language model"])
def test_two_workers_that_are_killed_count_all_that_was_released(tmp_path, config):
    """What the ledger has at the end is what it had at the kill, and all from the checkpoint on."""
    run = tmp_path / "run"
    noisy = [*NOISY, "training.epochs=4", "data.size=800"]
    noisy += commands.TINY if config == QUICKSTART else []
    process = of_two_workers(*training(run, [config, DP_SGD], noisy)[1:])
    epoch, step = kill_in_the_middle(process, run)
    before = read_ledger(run / "privacy_ledger.jsonl")
    finish(of_two_workers("--resume", run))
    after, steps = read_ledger(run / "privacy_ledger.jsonl"), before.plan.steps_per_epoch
    assert after.entries[: len(before.entries)] == before.entries
    more = after.entries[len(before.entries) :]
    assert sum(entry.event.count for entry in more) == (4 - epoch) * steps - step
    assert {entry.epoch for entry in more} == set(range(epoch, 4))
    holds = guarantee(after.plan, after.entries).holds.epsilon.value
    assert read(run, "privacy")["holds"]["epsilon"] == pytest.approx(holds)
