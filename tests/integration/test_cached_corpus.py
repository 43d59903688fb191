"""A run on a corpus that is mapped from files is the run on the corpus in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TINY = ["data.size=600", "data.embeddings.dimension=16", "model.hidden_size=16",
        "model.character_filters=4", "training.epochs=2"]  # fmt: skip
# The real command line, but corpora of 100 utterances are large.
PROGRAM = """
import sys
from edp_mx.data import corpus
corpus.KEPT_FROM = 100
from edp_mx.cli import main
sys.exit(main())
"""


def edp_mx(*arguments, cache):
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "EDP_MX_CACHE": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], text=True, capture_output=True,
        env={**os.environ, **environment}, timeout=300)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result


def train(run, cache):
    edp_mx("train", ROOT / "configs" / "quickstart.yaml", "--run", run, "--set", *TINY,
           cache=cache)  # fmt: skip
    return run


def test_training_and_evaluation_are_the_same(tmp_path):
    cache = tmp_path / "cache"
    held = train(tmp_path / "held", "off")
    runs = [train(tmp_path / name, cache) for name in ("written", "opened")]
    assert len(list((cache / "corpora").glob("*.arrow"))) == 1
    for run in runs:
        for name in ("split.json", "vocabulary.json", "layers.json"):
            assert (run / name).read_bytes() == (held / name).read_bytes()
        prints = [json.loads((one / "environment.json").read_text())["fingerprints"]
                  for one in (held, run)]  # fmt: skip
        assert prints[0] == prints[1]
        for one, other in zip(rows(held), rows(run)):
            del one["seconds"], other["seconds"]
            assert one == pytest.approx(other, rel=1e-3)
        assert scores(run) == pytest.approx(scores(held), rel=1e-3)
        with np.load(held / "weights.npz") as one, np.load(run / "weights.npz") as other:
            for name in one.files:
                np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5)
    again = json.loads(edp_mx("evaluate", runs[1], "--json", cache=cache).stdout)
    assert again["ser"] == pytest.approx(scores(held)["ser"], rel=1e-3)


def rows(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def scores(run):
    return json.loads((run / "results.json").read_text())["test"]
