"""What a language model lets out of real turns of dialogues that it was trained on, by attacks."""

import gzip
import itertools
import json

import numpy as np
import pytest
from support.commands import CONFIGS, edp_mx, read

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SMALL = ["model.num_layers=2", "model.num_heads=2", "model.hidden_size=64",
         "model.intermediate_size=128", "model.dropout=0", "data.max_pieces=64"]  # fmt: skip
TURNS = ["data.split=50/2/48", "data.columns.prompt=acts"]


def cut(source, target, lines):
    """The first turns, each as a dialogue of its own: ε is that of one turn, not of a dialogue."""
    with gzip.open(source, "rt", encoding="utf-8") as file, open(target, "w") as out:
        for number, line in enumerate(itertools.islice(file, lines)):
            out.write(json.dumps({**json.loads(line), "dialogue": f"alone/{number}"}) + "\n")
    return target


@pytest.fixture(scope="module")
def runs(corpora, tmp_path_factory):
    """A small GPT-2 of turns that are public, and two that go on from it, one privately."""
    source, folder = corpora / "dstc8_nlg", tmp_path_factory.mktemp("leaks")
    if not source.exists():
        pytest.skip("the system turns of DSTC8 are absent: see EDP_MX_DATA")
    public = cut(source / "dev.jsonl.gz", folder / "public.jsonl", 2000)
    mine = cut(source / "train.jsonl.gz", folder / "mine.jsonl", 600)
    recipes = CONFIGS / "causal_lm"
    edp_mx("train", recipes / "public_text.yaml", "--run", folder / "public", "--set", *SMALL,
           f"data.path={public}", "data.vocabulary.max_words=1000", "training.epochs=4",
           "data.columns.prompt=acts", "training.learning_rate=3e-3")  # fmt: skip
    own = [f"data.path={mine}", *TURNS, "model.dropout=0", "data.max_pieces=64",
           f"model.checkpoint={folder / 'public' / 'model'}"]  # fmt: skip
    edp_mx("train", recipes / "private.yaml", CONFIGS / "mechanism" / "sgd.yaml", "--run",
           folder / "sgd", "--set", *own, "training.epochs=12", "training.batch_size=16",
           "training.learning_rate=3e-3")  # fmt: skip
    edp_mx("train", recipes / "private.yaml", "--run", folder / "private", "--set", *own,
           "training.epochs=4", "training.batch_size=64",
           "training.learning_rate=1e-3")  # fmt: skip
    for name in ("sgd", "private"):
        edp_mx("attack", folder / name, "--lira", 8, "--jobs", 1, "--canaries",
               "--canary-count", 2, "--candidates", 300)  # fmt: skip
    return folder


def auc(run, attack):
    results = read(run / f"attack-{attack}", "attack")["results"]
    return {result["name"]: result["auc"]["value"] for result in results}


def exposures(run):
    """Mean exposure by rank, in bits, by how often a canary was trained on."""
    canaries = read(run / "attack-canaries", "exposure")["canaries"]
    return {n: np.mean([c["by_rank"] for c in canaries if c["repeats"] == n]) for n in (1, 10, 100)}


def test_members_are_told_from_others_only_without_privacy(runs):
    assert list(auc(runs / "sgd", "threshold")) == ["loss"]  # all that such a model says
    assert auc(runs / "sgd", "threshold")["loss"] > 0.6
    assert auc(runs / "sgd", "lira")["LiRA online, aligned"] > 0.85
    assert auc(runs / "private", "threshold")["loss"] < 0.58
    assert auc(runs / "private", "lira")["LiRA online, aligned"] < 0.7


def test_a_number_that_was_said_once_is_known_only_without_privacy(runs):
    shown, hidden = exposures(runs / "sgd"), exposures(runs / "private")
    assert min(shown.values()) > 5.5 and shown[100] > 8  # of 8.2 bits
    assert hidden[1] < 6  # by chance 1.4 ± 1.4 bits each
    tokens = read(runs / "private" / "attack-canaries", "exposure")["canaries"][0]["tokens"]
    assert tokens[3] == "<|reply|>" and all(token.isdigit() for token in tokens[4:])
