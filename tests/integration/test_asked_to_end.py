"""SIGTERM: the run writes down where it stands, ends within 10 s, and goes on from that step."""

import os
import signal
import time

import numpy as np
import pytest
from support.commands import (
    QUICKSTART,
    ROOT,
    TINY,
    edp_mx,
    lines_of,
    start,
    wait_for,
    weights,
)

from edp_mx.training.state import TrainingState

LAUNCHER = ROOT / "launch" / "train.sh"
SETTINGS = ["--set", *TINY, "training.batch_size=4", "training.epochs=2"]
SIZES = {1: "data.size=800", 2: "data.size=4000"}  # a signal takes its time through the launcher


def end_in_the_middle(run, *command, size, **environment):
    """Starts a run, sends SIGTERM within its first epoch; what it said, and after how long."""
    process = start(*command, QUICKSTART, "--run", run, *SETTINGS, size, **environment)
    sign = run / ".workers" / "worker_0.json"
    wait_for(lambda: sign.exists() and "epoch 1 of 2, step" in sign.read_text(), process)
    os.kill(process.pid, signal.SIGTERM)
    began = time.monotonic()
    _, said = process.communicate(timeout=400)
    assert process.returncode == 130 and "Traceback" not in said, said
    assert not lines_of(run / "metrics.jsonl")  # the first epoch was not over
    return said, time.monotonic() - began


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_is_asked_to_end_goes_on_from_its_last_step(workers, tmp_path):
    run = tmp_path / "run"
    command = (LAUNCHER,) if workers > 1 else ("train",)
    size = SIZES[workers]
    said, seconds = end_in_the_middle(run, *command, size=size, NP=str(workers))
    steps = TrainingState.read(run / "checkpoint.npz").steps
    assert steps > 0
    assert f"it goes on after step {steps} of epoch 1 of 2" in said
    assert said.count("interrupted") == 1
    print(f"ended after {seconds:.1f} s")
    assert seconds < 60  # ten on a machine that has nothing else to do
    if workers > 1:
        again = start(LAUNCHER, "--resume", run, NP="2")
        told = f"resuming the run: it goes on after step {steps} of epoch 1 of 2"
        wait_for(lambda: told in (run / "rank_0.log").read_text(), again)
        wait_for(lambda: lines_of(run / "metrics.jsonl"), again)
        again.terminate()
        again.communicate()
    else:
        edp_mx("train", "--resume", run)
        edp_mx("train", QUICKSTART, "--run", tmp_path / "whole", *SETTINGS, size)
        for name, value in weights(tmp_path / "whole").items():
            np.testing.assert_array_equal(weights(run)[name], value)
