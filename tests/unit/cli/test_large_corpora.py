"""What looks at a corpus holds a few bytes of each utterance, never the utterances themselves."""

import json
import tracemalloc
from pathlib import Path

import pytest
from support.commands import CONFIGS, edp_mx

FEW, MANY = 500, 1500
MOST = 170  # bytes of each utterance; as objects of Python, one of these takes 190 to 550


def corpus(path, size):
    """A file of utterances that share their words, intents and slots, but not their ids."""
    with open(path, "w") as file:
        for i in range(size):
            tokens = [f"w{(i + j) % 50}" for j in range(10)]
            record = {"id": f"utterance/{i}", "tokens": tokens, "slots": ["B-s", *"O" * 9],
                      "intent": f"i{i % 5}"}  # fmt: skip
            file.write(json.dumps(record) + "\n")
    return path


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone's folder, where 200 utterances are a large corpus."""
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("edp_mx.data.corpus.KEPT_FROM", 200)
    monkeypatch.setattr("edp_mx.data.column_files._FLUSH", 100)
    monkeypatch.setattr("edp_mx.data.columns._CHUNK", 100)
    monkeypatch.setattr("edp_mx.cli.init.STANDIN_SIZE", 50)


def peak(*command):
    """The most memory that Python's objects and numpy's arrays take during a command."""
    tracemalloc.start()
    try:
        edp_mx(*command)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "command",
    [
        ("data", "describe"),
        ("data", "labels", "--force", "--out", "labels.json"),
        ("data", "text", "--force", "--out", "text.txt"),
        ("init", "--out", "mine.yaml", "--force", "--labels-are-public"),
    ],
    ids=" ".join,
)
def test_memory_hardly_grows_with_the_utterances(command, clone):
    few, many = corpus(Path("few.jsonl"), FEW), corpus(Path("many.jsonl"), MANY)
    edp_mx(*command, few)  # what is loaded once
    grown = peak(*command, many) - peak(*command, few)
    assert grown < MOST * (MANY - FEW)


def test_an_id_that_occurs_twice_is_told_when_all_is_read(clone):
    corpus(Path("twice.jsonl"), 20)
    with open("twice.jsonl", "a") as file:
        file.write('{"id": "utterance/7", "tokens": ["a"], "slots": ["O"], "intent": "i"}\n')
    for command in (["data", "describe", "twice.jsonl"], ["init", "twice.jsonl"],
                    ["data", "text", "twice.jsonl", "--out", "text.txt"]):  # fmt: skip
        errors = edp_mx(*command, code=2).stderr
        assert "twice.jsonl: the id 'utterance/7' occurs twice; ids must be unique" in errors
    assert not Path("text.txt").exists() and not Path("twice.yaml").exists()
