"""SIGTERM or a closed terminal: the run notes where it stands, ends in 10 s, and goes on there."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from support.commands import QUICKSTART, ROOT, TINY, edp_mx, lines_of, start, wait_for, weights
from support.workers import PATIENCE

from edp_mx.training.state import TrainingState

LAUNCHER = ROOT / "launch" / "train.sh"
SETTINGS = ["--set", *TINY, "training.batch_size=4", "training.epochs=1"]
SIZES = {1: "data.size=800", 2: "data.size=4000"}  # a signal takes its time through the launcher


def in_the_middle(run, *command, size, output=subprocess.PIPE, **environment):
    """A run in the background, within its epoch."""
    process = start(
        *command, QUICKSTART, "--run", run, *SETTINGS, size, output=output, **environment
    )
    sign = run / ".workers" / "worker_0.json"
    wait_for(lambda: sign.exists() and "epoch 1 of 1, step" in sign.read_text(), process)
    return process


def end_in_the_middle(run, *command, size, by=signal.SIGTERM, code=130, **environment):
    """Starts a run, sends a signal within its epoch; what it said, and after how long."""
    process = in_the_middle(run, *command, size=size, **environment)
    os.kill(process.pid, by)
    began = time.monotonic()
    _, said = process.communicate(timeout=400)
    assert process.returncode == code and "Traceback" not in said, said
    assert not lines_of(run / "metrics.jsonl")  # the epoch was not over
    return said, time.monotonic() - began


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_is_asked_to_end_goes_on_from_its_last_step(workers, tmp_path):
    run = tmp_path / "run"
    command = (LAUNCHER,) if workers > 1 else ("train",)
    size = SIZES[workers]
    said, seconds = end_in_the_middle(run, *command, size=size, NP=str(workers))
    steps = TrainingState.read(run / "checkpoint.npz").steps
    assert steps > 0
    assert f"it goes on after step {steps} of epoch 1 of 1" in said
    assert said.count("interrupted") == 1
    print(f"ended after {seconds:.1f} s")
    assert seconds < 60  # ten on a machine that has nothing else to do
    if workers > 1:
        again = start(LAUNCHER, "--resume", run, NP="2")
        told = f"resuming the run: it goes on after step {steps} of epoch 1 of 1"
        wait_for(lambda: told in (run / "rank_0.log").read_text(), again)
        wait_for(lambda: lines_of(run / "metrics.jsonl"), again)
        again.terminate()
        again.communicate()
    else:
        edp_mx("train", "--resume", run)
        edp_mx("train", QUICKSTART, "--run", tmp_path / "whole", *SETTINGS, size)
        for name, value in weights(tmp_path / "whole").items():
            np.testing.assert_array_equal(weights(run)[name], value)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_closed_terminal_ends_a_run_as_sigterm_does(workers, tmp_path):
    run = tmp_path / "run"
    command = (LAUNCHER,) if workers > 1 else ("train",)
    said, _ = end_in_the_middle(run, *command, size=SIZES[workers], by=signal.SIGHUP, code=129,
                                NP=str(workers))  # fmt: skip
    steps = TrainingState.read(run / "checkpoint.npz").steps
    assert steps > 0 and f"it goes on after step {steps} of epoch 1 of 1" in said
    assert f"--resume {run}" in said and said.count("interrupted") == 1
    assert not (run / ".workers").exists()


def test_a_terminal_that_is_gone_takes_no_checkpoint_with_it(tmp_path):
    """What is printed to it fails from then on."""
    run, (ours, theirs) = tmp_path / "run", pty.openpty()
    process = in_the_middle(run, "train", size=SIZES[1], output=theirs)
    os.close(theirs)
    os.close(ours)
    os.kill(process.pid, signal.SIGHUP)
    assert process.wait(PATIENCE) == 129
    assert TrainingState.read(run / "checkpoint.npz").steps > 0
    assert not (run / ".workers").exists()


def test_nohup_is_respected(tmp_path):
    run = tmp_path / "run"
    nohup = shutil.which("nohup"), sys.executable, "-m", "edp_mx", "train"
    process = in_the_middle(run, *nohup, size=SIZES[1])
    os.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and (run / "results.json").exists()
