"""A run directory, or a file of it, that is gone in mid-run: one sentence, and no traceback."""

import shutil
import subprocess
import sys
import time
from unittest import mock

import pytest
from support.commands import QUICKSTART, TINY, edp_mx, lines_of, weights

from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.processes import launcher
from edp_mx.training.log import MetricsLog
from edp_mx.training.state import TrainingState

CONFIG = """\
data: {corpus: health, size: 400}
model: {family: clc, hidden_size: 8, num_layers: 1, character_filters: 4, character_dimension: 4}
training: {epochs: 100000, batch_size: 32}
privacy: {mechanism: edp_sgd, noise_multiplier: 1.0}
"""


@pytest.mark.slow
def test_all_workers_say_one_sentence(tmp_path):
    (tmp_path / "mine.yaml").write_text(CONFIG)
    run = tmp_path / "run"
    train = [sys.executable, "-m", "edp_mx", "train", tmp_path / "mine.yaml", "--run", run]
    job = subprocess.Popen(
        [*map(str, launcher(2) + train)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        ends = time.monotonic() + 600
        while not (run / "checkpoint.npz").exists() and time.monotonic() < ends:
            time.sleep(0.2)
        shutil.rmtree(run)
        said = job.communicate(timeout=600)[1]
    finally:
        job.kill()
    assert job.returncode == 2
    assert "Traceback" not in said
    sentences = [line for line in said.splitlines() if "edp-mx train: " in line]
    assert len(sentences) == 1
    assert "cannot " in sentences[0] and str(run) in sentences[0]


@pytest.mark.parametrize("name", ["split", "vocabulary", "layers", "config"])
def test_a_file_that_is_gone_ends_the_run_which_goes_on_with_it(name, tmp_path):
    run = tmp_path / "run"
    file = run / f"{name}.{'yaml' if name == 'config' else 'json'}"
    add, kept = MetricsLog.add, []

    def lose(self, row):
        add(self, row)
        if row["epoch"] == 1:
            kept.append(file.read_bytes())
            file.unlink()

    settings = ["--set", *TINY, "data.size=200", "training.epochs=2"]
    with mock.patch.object(MetricsLog, "add", lose):
        said = edp_mx("train", QUICKSTART, "--run", run, *settings, code=2).stderr
    assert f"{run} has lost {file.name}: without that its model " in said
    assert lines_of(run / "metrics.jsonl") == 1 and not (run / "weights.npz").exists()
    assert TrainingState.read(run / "checkpoint.npz").epochs == 1
    if name != "split":  # the others would take long and show the same
        return
    assert "has lost split.json" in edp_mx("train", "--resume", run, code=2).stderr
    file.write_bytes(kept[0])
    edp_mx("train", "--resume", run)
    assert lines_of(run / "metrics.jsonl") == 2 and weights(run)


def test_a_file_that_is_gone_at_the_end_leaves_no_finished_run(tmp_path):
    run, write = tmp_path / "run", RunDirectory.write

    def lose(self, name, value):
        write(self, name, value)
        if name == "privacy":
            (run / "vocabulary.json").unlink()

    settings = ["--set", *TINY, "data.size=200", "training.epochs=1"]
    with mock.patch.object(RunDirectory, "write", lose):
        said = edp_mx("train", QUICKSTART, "--run", run, *settings, code=2).stderr
    assert f"{run} has lost vocabulary.json: without that its model " in said
    assert (run / "checkpoint.npz").exists() and not (run / "results.json").exists()
