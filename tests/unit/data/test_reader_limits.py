"""Corpora that would fill a memory or take minutes are refused, with file and line."""

import contextlib
import gzip
import json
import time

import pytest
from support.refusals import refused

from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings
from edp_mx.data.readers import assembly, read_utterances
from edp_mx.data.readers.nlu_eval import parse_annotation, split_fields
from edp_mx.errors import UserError

GOOD = '{"tokens": ["call"], "slots": ["O"], "intent": "call"}\n'


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".tsv", ".csv.gz"])
def test_a_line_has_a_limit(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"a{suffix}"
    head = (
        GOOD.encode()
        if "json" in suffix
        else b"text,intent,slots\n".replace(b",", b"\t" if "tsv" in suffix else b",")
    )
    content = head + b'"' + b"a" * 2**20 + b'"\n'
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    refused(path, r"line 2: longer than 1,048,576 bytes; EDP_MX_MAX_LINE")
    monkeypatch.setenv("EDP_MX_MAX_LINE", str(2**21))
    assert "longer than" not in refused(path, "line ")
    monkeypatch.setenv("EDP_MX_MAX_LINE", "1 MB")
    refused(path, "EDP_MX_MAX_LINE is '1 MB'")


def test_a_line_of_the_largest_size_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("EDP_MX_MAX_LINE", str(len(GOOD) - 1))
    (tmp_path / "a.jsonl").write_bytes(GOOD.encode().replace(b"\n", b"\r\n") * 2)
    assert len(read_utterances(tmp_path / "a.jsonl")) == 2


def test_a_compressed_file_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "ALWAYS_READ", 10_000)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 2_000_000))
    refused(path, r"a\.jsonl\.gz, line \d+: it holds more than")


@pytest.mark.parametrize(
    "line, told",
    [
        (GOOD.replace("call", "\\ud800"), "line 2: not JSON \\(half a character"),
        (GOOD.replace("]", "]" + "[" * 200_000, 1), "line 2: not JSON"),
        (GOOD.replace('"O"', "9" * 5000), "line 2: not JSON \\(a number of 5000 digits"),
        (GOOD.replace('"O"', "NaN"), "line 2: not JSON"),
    ],
    ids=["surrogate", "deep", "digits", "nan"],
)
def test_json_that_breaks_later_is_refused_where_it_stands(line, told, tmp_path):
    (tmp_path / "a.jsonl").write_text(GOOD + line)
    refused(tmp_path / "a.jsonl", told)


def test_documents_of_json_have_the_same_limits(tmp_path):
    snips = tmp_path / "a.json"
    for content, told in ((b"[" * 200_000, "nested"), (b'{"I":\n"\\ud800"}', "line 2: not JSON")):
        snips.write_bytes(content)
        refused(snips, told)
    dialogues = tmp_path / "dialogues_001.json"
    slot = {"slot": "a", "start": 0, "exclusive_end": 1}
    frame = {"slots": [slot] * 1000, "actions": [{"act": "INFORM"}]}
    turn = {"speaker": "USER", "utterance": "a", "frames": [frame]}
    dialogues.write_text(json.dumps([{"dialogue_id": "1", "turns": [turn]}]))
    refused(dialogues, "dialogue 1, turn 1: a turn of 1 characters and 1,000 slots")


@pytest.mark.parametrize(
    "read, text",
    [
        (parse_annotation, "[" + " " * 300_000),
        (parse_annotation, "[a:" + " " * 300_000),
        (parse_annotation, "[" * 300_000),
        (split_fields, ';"x' * 300_000),
        (split_fields, '"' + 'a"b' * 300_000),
    ],
    ids=["blanks", "value", "brackets", "quotes", "one quote"],
)
def test_the_time_for_a_line_of_nlu_eval_grows_with_its_length(read, text):
    before = time.process_time()
    with contextlib.suppress(UserError):
        read(text, 0 if read is split_fields else "a.csv, line 2")
    assert time.process_time() - before < 3


@pytest.mark.parametrize("header", ["1 " + "9" * 5000, "1 " + "9" * 30])
def test_a_header_of_vectors_has_a_limit(header, tmp_path):
    path = tmp_path / "a.vec"
    path.write_text(f"{header}\ncall 1 2 3\n")
    with pytest.raises(UserError, match=r"a\.vec, line 1"):
        load_embeddings(EmbeddingsConfig(str(path), dimension=3), ["call"])
