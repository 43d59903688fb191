"""`edp-mx data text`: corpora as plain text."""

import gzip

import pytest

from edp_mx.cli import main
from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import make_utterances


def expected(name, size, seed):
    return [" ".join(utterance.tokens) for utterance in make_utterances(name, size=size, seed=seed)]


def test_stand_ins_and_paths_are_written_one_after_the_other(tmp_path, capsys):
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"tokens": ["call", "mum"], "slots": ["O", "O"], "intent": "call"}\n')
    out = tmp_path / "out" / "text.txt"
    assert main(["data", "text", "health", str(mine), "video", "--size", "30", "--seed", "4",
                 "--out", str(out)]) == 0  # fmt: skip
    lines = out.read_text().splitlines()
    assert lines == [*expected("health", 30, 4), "call mum", *expected("video", 30, 4)]
    assert "61 lines from health" in capsys.readouterr().out


def test_a_public_corpus_is_found_by_its_name(corpora, tmp_path, monkeypatch):
    monkeypatch.setenv("EDP_MX_DATA", str(corpora))
    out = tmp_path / "atis.txt.gz"
    assert main(["data", "text", "atis", "--out", str(out)]) == 0
    lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    assert lines == [" ".join(utterance.tokens) for utterance in read_utterances(corpora / "atis")]


@pytest.mark.parametrize("arguments, message", [
    (["nowhere"], "'nowhere' is none of"),
    (["health", "--size", "0"], "--size is 0; it must be 1 or more"),
    (["health", "--seed", "-1"], "--seed is -1; it must be 0 or more"),
])  # fmt: skip
def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path, capsys, arguments, message):
    assert main(["data", "text", *arguments, "--out", str(tmp_path / "a.txt")]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
