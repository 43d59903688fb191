"""A run that protects users, through the command line: what it counts, splits and reports."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.jsonl import write_jsonl

from edp_mx.accounting.ledger import read_ledger
from edp_mx.accounting.ledger_account import account_for
from edp_mx.data.synthetic import make_utterances

ROOT = Path(__file__).resolve().parents[2]
TINY = ["data.corpus=mine", "data.size=null", "data.vocabulary.source=train",
        "data.labels.source=train", "data.embeddings.dimension=8", "model.hidden_size=8",
        "model.character_filters=4", "training.epochs=2", "training.batch_size=16",
        "privacy.decay.kind=none", "privacy.decay.rate=0", "privacy.mechanism=dp_sgd",
        "privacy.unit=user", "privacy.max_utterances_per_user=3"]  # fmt: skip


def train(corpus, run, *settings, code=0):
    """The real command line."""
    result = subprocess.run(
        [sys.executable, "-m", "edp_mx", "train", ROOT / "configs" / "quickstart.yaml",
         "--run", run, "--set", *TINY, f"data.path={corpus}", *settings],
        text=True, capture_output=True, timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == code, result.stderr
    return result.stderr


def read(run, name):
    return json.loads((run / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """500 utterances of 100 users."""
    path = tmp_path_factory.mktemp("users") / "users.jsonl"
    utterances = make_utterances("communication", size=500, seed=2)
    write_jsonl(path, [replace(u, user=f"user {i % 100}") for i, u in enumerate(utterances)])
    return path


@pytest.mark.parametrize("clipping", ["loop", "ghost"])
@pytest.mark.parametrize(
    "sampler, adjacency", [("shuffle", "replace_one"), ("poisson", "zero_out")]
)
def test_everything_speaks_of_users(corpus, tmp_path, clipping, sampler, adjacency):
    run = tmp_path / "run"
    said = train(corpus, run, f"privacy.clipping={clipping}", f"privacy.sampler={sampler}",
                 f"privacy.adjacency={adjacency}", "privacy.noise_multiplier=2")  # fmt: skip
    assert "Privacy of one user" in said
    privacy, split = read(run, "privacy"), read(run, "split")
    records = map(json.loads, corpus.read_text().splitlines())
    owner = {record["id"]: record["user"] for record in records}
    users = {part: {owner[id] for id in ids} for part, ids in split.items()}
    assert len(users["train"]) == privacy["num_examples"] and privacy["unit"] == "one user"
    assert sum(map(len, users.values())) == 100  # each on one side
    assert privacy["delta"] == 1 / (2 * len(users["train"]))
    assert (privacy["clips"], privacy["kappa"]) == ("user", 1 if adjacency == "zero_out" else 2)
    plan = read_ledger(run / "privacy_ledger.jsonl").plan
    n = len(users["train"])
    assert plan.num_records == n and plan.release.micro_batch_size == 16
    assert plan.release.sample_rate == (16 / n if sampler == "poisson" else 1.0)
    account = account_for(run / "privacy_ledger.jsonl")
    assert account.spent.to_dict() == privacy and account.differences == ()


def test_a_corpus_without_users_is_refused(tmp_path):
    path = tmp_path / "nobody.jsonl"
    write_jsonl(path, make_utterances("communication", size=300, seed=2))
    said = train(path, tmp_path / "run", code=2)
    assert "names no user" in said and 'the key "user"' in said


@pytest.mark.slow
def test_dialogues_of_a_real_corpus_are_users(corpora, tmp_path):
    source = corpora / "dstc8" / "utterances.jsonl.gz"
    if not source.exists():
        pytest.skip("DSTC8 is absent: see EDP_MX_DATA")
    path = tmp_path / "dstc8.jsonl"
    with gzip.open(source, "rt", encoding="utf-8") as file:
        path.write_text("".join(islice(file, 20_000)), encoding="utf-8")
    run = tmp_path / "run"
    train(path, run, "privacy.max_utterances_per_user=8", "training.batch_size=128",
          "privacy.target_epsilon=8", "privacy.noise_multiplier=null", "privacy.sampler=poisson",
          "privacy.adjacency=zero_out", "privacy.assume_public=[vocabulary]")  # fmt: skip
    privacy = read(run, "privacy")
    assert 7.9 < privacy["holds_if"]["epsilon"] <= 8 and privacy["holds"]["epsilon"] is None
    assert "privacy.assume_public says so" in privacy["holds_if"]["conditions"][0]
    assert 800 < privacy["num_examples"] < 1200  # of some 2,200 dialogues
    losses = [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert np.isfinite(losses).all()
