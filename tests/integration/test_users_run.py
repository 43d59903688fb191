"""A run that protects users, through the command line: what it counts, splits and reports."""

import gzip
import json
from itertools import islice

import numpy as np
import pytest
from support import commands
from support.commands import NO_DECAY, QUICKSTART, edp_mx, read, rows
from support.jsonl import users_corpus

from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.accounting.ledger_account import account_for

TINY = [*commands.TINY, *NO_DECAY, "data.corpus=mine", "data.size=null",
        "data.vocabulary.source=train", "data.labels.source=train", "training.epochs=2",
        "privacy.mechanism=dp_sgd", "privacy.unit=user",
        "privacy.max_utterances_per_user=3"]  # fmt: skip


def train(corpus, run, *settings, code=0):
    """What training on the file says."""
    settings = ["--set", *TINY, f"data.path={corpus}", *settings]
    return edp_mx("train", QUICKSTART, "--run", run, *settings, code=code).stderr


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return users_corpus(tmp_path_factory.mktemp("users") / "users.jsonl", size=500, users=100)


@pytest.mark.parametrize(
    "clipping, sampler, adjacency",
    [("loop", "shuffle", "replace_one"), ("ghost", "poisson", "zero_out")],
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
    assert {**account.spent.to_dict(), "ledger_end": account.ledger.chain.end} == privacy
    assert account.differences == ()


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
    assert np.isfinite([row["loss"] for row in rows(run)]).all()
