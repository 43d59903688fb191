"""Text as a stream: what is read, and written."""

import gzip

import pytest
from support.refusals import one_sentence, refused

from edp_mx.config import ExperimentConfig
from edp_mx.data.readers import read_utterances
from edp_mx.data.readers.columns_config import NONE, ColumnsConfig
from edp_mx.data.text import digest, lines_of, write_lines


def test_lines_are_read_without_blanks_around_them(tmp_path):
    content = "\ufeffcall mum\r\n\n   \n  hang up \nlast"
    (tmp_path / "a.txt").write_text(content, encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("a.txt", "a.txt.gz"):
        assert list(lines_of(tmp_path / name)) == ["call mum", "hang up", "last"]


def test_a_line_that_is_not_utf_8_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\n\nna\xefve\n")
    one_sentence(r"a\.txt, line 3: not UTF-8", list, lines_of(tmp_path / "a.txt"))


def test_what_is_written_is_read_again_and_has_the_same_bytes(tmp_path):
    lines = ["call  mum", "naïve\u2028line", "hang up"]
    assert write_lines(tmp_path / "a.txt.gz", lines) == 3
    write_lines(tmp_path / "b.txt.gz", lines)
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()
    assert list(lines_of(tmp_path / "a.txt.gz")) == ["call mum", "naïve line", "hang up"]


def test_a_text_is_a_corpus_without_labels(tmp_path):
    write_lines(tmp_path / "b.txt.gz", ["hang up", "stop"])
    (tmp_path / "a.txt").write_text("call  mum\n\nplay jazz")
    columns = ColumnsConfig(slots=NONE, intent=NONE)
    read = read_utterances(tmp_path, columns=columns)
    assert [(u.id, " ".join(u.tokens)) for u in read] == [
        ("a.txt/1", "call mum"), ("a.txt/3", "play jazz"), ("b.txt.gz/1", "hang up"),
        ("b.txt.gz/2", "stop")]  # fmt: skip
    assert {(u.intent, *set(u.slots)) for u in read} == {("", "O")}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_any_corpus_is_read_without_its_labels(tmp_path, name):
    rows = {"a.jsonl": '{"text": "call mum", "intent": "call"}\n', "a.csv": "text\ncall mum\n"}
    (tmp_path / name).write_text(rows[name])
    (read,) = read_utterances(tmp_path / name, columns=ColumnsConfig(slots=NONE, intent=NONE))
    assert read.tokens == ("call", "mum") and read.intent == ""


def test_a_text_is_no_corpus_of_a_task_with_labels(tmp_path):
    (tmp_path / "a.txt").write_text("\ncall mum\n")
    refused(tmp_path / "a.txt", r"a\.txt, line 2: the intent or label is missing; .*intent=none")


def test_a_task_without_labels_has_none_in_its_settings():
    data = ExperimentConfig(task="masked_lm").data
    assert (data.columns.slots, data.columns.intent, data.labels.source) == (NONE, NONE, NONE)
    one_sentence(r"data\.labels\.source must not be none", ExperimentConfig, data=data)


@pytest.mark.parametrize(
    "same",
    [
        ("don't, please.", "don ' t , PLEASE ."),
        ("caf\u00e9 no 5", "Cafe\u0301 no. \uff15"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u6771\u4eac \u3078", "\u6771\u4eac\u3078\u3002"),
        ("20 \u2103, Brand\u2122", "20 \u00b0c brandtm"),
    ],
)
def test_a_digest_is_of_letters_and_digits_however_the_words_are_cut(same):
    first, second = map(digest, same)
    assert first == second != digest(same[0] + " a")


def test_what_has_no_letters_has_its_own_digest():
    assert len({*map(digest, ("?", "!", ":-)", ""))}) == 4


def test_a_digest_heeds_the_vowels_that_are_marks():
    assert digest("\u0926\u093f\u0928") != digest("\u0926\u093e\u0928")
