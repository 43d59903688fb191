"""A run directory that is gone in mid-run: one sentence from all workers, and no traceback."""

import shutil
import subprocess
import sys
import time

import pytest

from edp_mx.runtime.processes import launcher

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
