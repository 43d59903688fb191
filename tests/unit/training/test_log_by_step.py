"""The log of a run that counts by steps has each step once, resumed or not."""

import json
import math
import shutil

import pytest

from edp_mx.errors import UserError
from edp_mx.training.log import MetricsLog


def steps(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_what_came_after_the_checkpoint_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, counter="step")
    for step in (5, 10, 15):
        log.add({"step": step, "loss": 1.0})
    with path.open("a") as file:
        file.write('{"step": 20, "lo')  # the crash
    log = MetricsLog(path, counter="step", start=11)
    assert steps(path) == [5, 10]
    log.add({"step": 15, "loss": 2.0})
    assert steps(path) == [5, 10, 15]
    MetricsLog(path, counter="step")
    assert steps(path) == []


def test_what_is_not_finite_is_null(tmp_path):
    MetricsLog(tmp_path / "metrics.jsonl", counter="step").add({"step": 1, "loss": math.inf})
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 1, "loss": None}


def test_a_folder_that_is_gone_is_said(tmp_path):
    log = MetricsLog(tmp_path / "run" / "metrics.jsonl", counter="step")
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(UserError, match="cannot write"):
        log.add({"step": 1})
