"""The log of a run that counts its epochs has each once, resumed or not."""

import json
import math
import shutil

from support.refusals import one_sentence

from edp_mx.training.log import MetricsLog


def epochs(path):
    return [json.loads(line)["epoch"] for line in path.read_text().splitlines()]


def test_what_came_after_the_checkpoint_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    for epoch in (5, 10, 15):
        log.add({"epoch": epoch, "loss": 1.0})
    with path.open("a") as file:
        file.write('{"epoch": 20, "lo')  # the crash
    log = MetricsLog(path, start=11)
    assert epochs(path) == [5, 10]
    log.add({"epoch": 15, "loss": 2.0})
    assert epochs(path) == [5, 10, 15]
    MetricsLog(path)
    assert epochs(path) == []


def test_what_is_not_finite_is_null(tmp_path):
    MetricsLog(tmp_path / "metrics.jsonl").add({"epoch": 1, "loss": math.inf})
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"epoch": 1, "loss": None}


def test_a_folder_that_is_gone_is_said(tmp_path):
    (tmp_path / "run").mkdir()
    log = MetricsLog(tmp_path / "run" / "metrics.jsonl", tracking="tensorboard")
    shutil.rmtree(tmp_path / "run")
    one_sentence("cannot write", log.add, {"epoch": 1})
