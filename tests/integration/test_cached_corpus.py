"""A run on a corpus that is mapped from files is the run on the corpus in memory."""

import json

import numpy as np
import pytest
from support.commands import QUICKSTART, edp_mx, read, rows, weights

from edp_mx.data import corpus

TINY = ["data.size=600", "data.embeddings.dimension=16", "model.hidden_size=16",
        "model.character_filters=4", "training.epochs=2"]  # fmt: skip


def train(run):
    edp_mx("train", QUICKSTART, "--run", run, "--set", *TINY)
    return run


def test_training_and_evaluation_are_the_same(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setattr(corpus, "KEPT_FROM", 100)
    monkeypatch.setenv("EDP_MX_CACHE", "off")
    held = train(tmp_path / "held")
    monkeypatch.setenv("EDP_MX_CACHE", str(cache))
    runs = [train(tmp_path / name) for name in ("written", "opened")]
    assert len(list((cache / "corpora").glob("*.arrow"))) == 1
    for run in runs:
        for name in ("split.json", "vocabulary.json", "layers.json"):
            assert (run / name).read_bytes() == (held / name).read_bytes()
        prints = [read(one, "environment")["fingerprints"] for one in (held, run)]
        assert prints[0] == prints[1]
        for one, other in zip(rows(held), rows(run)):
            del one["seconds"], other["seconds"]
            assert one == pytest.approx(other, rel=1e-3)
        assert scores(run) == pytest.approx(scores(held), rel=1e-3)
        for name, value in weights(run).items():
            np.testing.assert_allclose(weights(held)[name], value, rtol=1e-4, atol=1e-5)
    again = json.loads(edp_mx("evaluate", runs[1], "--json").stdout)
    assert again["ser"] == pytest.approx(scores(held)["ser"], rel=1e-3)


def scores(run):
    return read(run, "results")["test"]
