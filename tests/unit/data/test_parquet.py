"""Parquet as Hugging Face publishes datasets: rows, parts in several files, and what is refused."""

import json

import pyarrow
import pytest
from pyarrow import parquet
from support.refusals import refused

from edp_mx.data.readers import parquet as reader
from edp_mx.data.readers import read_utterances, stream_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.utterance import Utterance

ROWS = [
    {"id": "0", "tokens": ["call", "mum"], "ner_tags": [0, 1], "label": 1},
    {"id": "0", "tokens": ["hang", "up"], "ner_tags": [0, 0], "label": 0},
]
READ = [
    Utterance(("call", "mum"), ("O", "B-who"), "call"),
    Utterance(("hang", "up"), ("O",) * 2, "end"),
]
TEXTS = [
    {"text": "call mum", "intent": "call", "user": "ann",
     "spans": [{"start": 5, "end": 8, "label": "who"}]},
    {"text": "hang up", "intent": "end", "user": "bo", "spans": []},
]  # fmt: skip


def write(path, rows):
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"ner_tags": ["O", "B-who"], "label": ["end", "call"]}))
    return ColumnsConfig(label_names=str(path))


def test_rows_of_tokens_and_of_texts_with_spans(tmp_path, names):
    assert read_utterances(write(tmp_path / "a.parquet", ROWS), columns=names) == READ
    found = read_utterances(write(tmp_path / "b.parquet", TEXTS))
    assert found == READ
    assert [(u.id, u.user) for u in found] == [("b.parquet/1", "ann"), ("b.parquet/2", "bo")]
    flat = [{"utterance": "call mum", "slots": "O B-who", "category": "call"}]
    named = ColumnsConfig(text="utterance")
    assert read_utterances(write(tmp_path / "c.parquet", flat), columns=named) == READ[:1]


def test_many_rows_are_read_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_AT_ONCE", 7)
    rows = [{**TEXTS[0], "text": f"call {i}"} for i in range(40)]
    found = read_utterances(write(tmp_path / "a.parquet", [{**r, "spans": []} for r in rows]))
    assert [u.tokens[1] for u in found] == [str(i) for i in range(40)]


def test_parts_lie_in_one_or_in_several_files(tmp_path):
    for name in (
        "train-00000-of-00002",
        "train-00001-of-00002",
        "validation-00000-of-00001",
        "test",
    ):
        write(tmp_path / f"{name}.parquet", TEXTS)
    found = list(stream_utterances(tmp_path))
    assert [part for part, _ in found] == ["train"] * 4 + ["validation"] * 2 + ["test"] * 2
    assert len({u.id for _, u in found}) == 8
    (tmp_path / "train-00000-of-00002.parquet").unlink()
    refused(tmp_path, r"holds 1 files train-\*\.parquet, which are not the 2")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{**TEXTS[0], "intent": None}], "row 1: the intent or label is missing"),
        ([TEXTS[1], {**TEXTS[0], "text": "a"}], "row 2: the span 5 to 8"),
        ([{"text": "a", "slots": "O"}], 'row 1: the column "intent" or "label"'),
        (ROWS, 'row 1: "ner_tags" holds the number 0'),
        ([{"text": "a b", "intent": "x", "bio": ["O", "O"]}], 'row 1: the column "bio" looks like'),
    ],
)
def test_a_bad_row_is_named(rows, told, tmp_path):
    path = write(tmp_path / "a.parquet", rows)
    refused(path, rf"a\.parquet, {told}")


def test_a_damaged_or_huge_file_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", [TEXTS[0]] * 5000)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    refused(path, r"cannot read .*a\.parquet: ")
    path.write_bytes(whole)
    monkeypatch.setattr(reader, "ALWAYS_READ", 10)
    monkeypatch.setattr(reader, "MOST_INFLATION", 0)
    refused(path, r"a\.parquet: it holds [\d,]+ bytes, which is no text")
