"""`edp-mx data` from the command line's side: results on stdout, one sentence on stderr."""

import gzip
import hashlib
import json
from functools import partial

import pytest
from support import cli
from support.jsonl import write_records
from support.refusals import one_sentence

from edp_mx.cli import main
from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import make_utterances
from edp_mx.errors import UserError

run = partial(cli.run, "data")


def test_make_writes_a_corpus_that_says_what_it_is(tmp_path, capsys):
    out = tmp_path / "health"
    assert run("make", "health", "--size", "300", "--out", str(out), "--seed", "5") == 0
    names = {path.name for path in out.iterdir()}
    assert names == {"README.md", "corpus.json", "utterances.jsonl"}
    sha256 = hashlib.sha256((out / "utterances.jsonl").read_bytes()).hexdigest()
    facts = json.loads((out / "corpus.json").read_text())
    assert facts == {"synthetic": True, "corpus": "health", "size": 300, "seed": 5}
    readme = (out / "README.md").read_text()
    assert sha256 in readme and "make health --size 300 --seed 5" in readme
    assert read_utterances(out) == list(make_utterances("health", size=300, seed=5))
    printed = capsys.readouterr()
    assert sha256 in printed.out and "300" in printed.out
    assert "health" in printed.err  # progress


def test_make_again_gives_the_same_bytes_and_spares_other_files(tmp_path):
    for out in ("a", "a", "b"):
        run("make", "video", "--size", "200", "--out", str(tmp_path / out))
    made, again = ((tmp_path / out / "utterances.jsonl").read_bytes() for out in "ab")
    assert made == again
    (tmp_path / "a" / "utterances.jsonl").unlink()  # as if the call had been killed before
    assert run("make", "video", "--size", "200", "--out", str(tmp_path / "a")) == 0
    assert (tmp_path / "a" / "utterances.jsonl").read_bytes() == again
    for other in (("health", "200", "1"), ("video", "100", "1"), ("video", "200", "2")):
        named = ("make", other[0], "--size", other[1], "--seed", other[2])
        with pytest.raises(UserError, match="holds files already"):
            run(*named, "--out", str(tmp_path / "b"))
    assert (tmp_path / "b" / "utterances.jsonl").read_bytes() == again
    (tmp_path / "b" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        run("make", "video", "--size", "200", "--out", str(tmp_path / "b"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "utterances.jsonl").write_bytes(again)  # a corpus that make did not write
    with pytest.raises(UserError, match="holds files already"):
        run("make", "health", "--size", "10", "--out", str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "utterances.jsonl").read_bytes() == again


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("make", "video", "--size", "0"), "size"),
        (
            ("make", "nonsense", "--size", "5"),
            "no synthetic corpus 'nonsense'; there are communication, health",
        ),
        (("fetch", "weather"), "atis, snips, nlu_eval, dstc8"),
        (("fetch", "atis", "--from", "/nowhere/at/all"), "/nowhere/at/all"),
        (("text", "nowhere"), "nowhere: no such file or folder, nor a corpus [(]atis, snips,"),
        (("text", "health", "--size", "0"), "--size is 0; it must be 1 or more"),
        (("text", "health", "--seed", "-1"), "--seed is -1; it must be 0 or more"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(arguments, named, tmp_path):
    one_sentence(named, run, *arguments, "--out", str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_describe_tells_counts_and_examples(tmp_path, capsys):
    lines = [
        {"tokens": ["call", "my", "big", "sister"], "intent": "call",
         "slots": ["O", "O", "B-who", "I-who"]},
        {"tokens": ["call", "my", "big", "sister"], "intent": "other",
         "slots": ["O", "O", "O", "O"]},
        {"tokens": ["hang", "up"], "intent": "call", "slots": ["O", "O"]},
    ]  # fmt: skip
    path = write_records(tmp_path / "own.jsonl", lines)
    assert "sister" not in cli.printed(capsys, "data", "describe", str(path))
    told = cli.printed(capsys, "data", "describe", str(path), "--show")
    assert "  paper  1, 1, 1  (the default, 45:5:50)" in told and "  own " not in told
    counted = {line.rsplit(" ", 1)[0].strip(): line.split()[-1] for line in told.splitlines()[1:9]}
    assert counted["utterances"] == "3" and "repeats: 2 utterances have" in told
    assert counted["tokens"] == "10" and counted["distinct words"] == "6"
    assert counted["intents"] == "2" and counted["slot types"] == "1"
    assert "call: call my [who: big sister]" in told
    assert "0% ≤ 2, 25% ≤ 2, 50% ≤ 4" in told


def test_describe_counts_copies_and_what_is_cut(tmp_path, capsys):
    texts = ["call mum", "Call mum", "call Mum", "hang up", "hang up", "play " * 64, "play " * 65]
    lines = [{"tokens": text.split(), "slots": ["O"] * len(text.split()), "intent": "x"}
             for text in texts]  # fmt: skip
    path = write_records(tmp_path / "own.jsonl", lines)
    told = cli.printed(capsys, "data", "describe", str(path))
    assert "repeats: 5 utterances have the words of another one; the most frequent has 3\n" in told
    assert "cut by data.max_tokens=64: 1 utterance\n" in told
    assert run("describe", str(path), "--max-tokens", "63", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["cut"], facts["repeats"]) == (2, {"copies": 5, "most": 3})
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\np\n##lay\n")
    options = ("--checkpoint", str(tmp_path), "--max-pieces", "130")
    assert run("describe", str(path), "--max-tokens", "99", *options) == 0
    assert "data.max_tokens=99 or data.max_pieces=130: 1 utt" in capsys.readouterr().out
    with pytest.raises(UserError, match="--max-tokens is 0; it must be 1 or more"):
        run("describe", str(path), "--max-tokens", "0")


def test_describe_as_json_shows_utterances_only_if_asked(tmp_path, capsys):
    path = tmp_path / "own.jsonl"
    path.write_text('{"tokens": ["call", "mum"], "slots": ["O", "B-who"], "intent": "call"}\n')
    found = cli.printed(capsys, "data", "describe", str(path), "--json")
    assert "mum" not in found and json.loads(found)["slots"] == {"who": 1}
    assert json.loads(found)["parts"] == {"": 1} and json.loads(found)["utterances"] == 1
    assert run("describe", str(path), "--json", "--show") == 0
    (example,) = json.loads(capsys.readouterr().out)["examples"]
    assert example["tokens"] == ["call", "mum"]


def test_describe_reads_a_table_whose_columns_are_named(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("said,bio,class\ncall mum,O I-who,call\n")
    named = ("--columns", "text=said", "slots=bio", "intent=class")
    assert run("describe", str(path), "--show", *named) == 0
    assert "  call: call [who: mum]\n" in capsys.readouterr().out
    for wrong in ("said", "txt=said", "text="):
        with pytest.raises(UserError, match="write KEY=NAME, where KEY is one of text, tokens"):
            run("describe", str(path), "--columns", wrong)


def test_characters_that_would_move_a_terminal_are_spelled_out(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("text,label\na \x1b[2J b,call\n")
    assert run("describe", str(path), "--show", "--columns", "slots=none") == 0
    assert "  call: a \\x1b[2J b\n" in capsys.readouterr().out


def test_a_span_that_begins_with_i_is_shown_as_it_is_read(tmp_path, capsys):
    path = tmp_path / "own.jsonl"
    line = {"tokens": ["call", "mum", "or", "dad"], "slots": ["O", "I-who", "I-by", "B-who"],
            "intent": "call"}  # fmt: skip
    path.write_text(json.dumps(line) + "\n")
    assert run("describe", str(path), "--show") == 0
    assert "  call: call [who: mum] [by: or] [who: dad]\n" in capsys.readouterr().out


def test_describe_takes_the_names_of_public_corpora_and_refuses_what_is_empty(
    corpora, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("EDP_MX_DATA", str(corpora))
    assert run("describe", "snips") == 0
    count = f"{len(read_utterances(corpora / 'snips')):,}"
    told = capsys.readouterr().out
    assert told.splitlines()[1].split() == ["utterances", count]
    assert "  own    13,084, 700, 700" in told
    empty = tmp_path / "empty.jsonl"
    for text in ("", "\n\n"):
        empty.write_text(text)
        one_sentence("empty.jsonl holds no utterances", run, "describe", str(empty))
    with pytest.raises(UserError, match="nowhere: no such file or folder, nor a corpus .atis, "):
        run("describe", "nowhere")


def test_describe_tells_users_where_they_are_named(tmp_path, capsys):
    line = {"tokens": ["hi"], "slots": ["O"], "intent": "greet"}
    named = [{**line, "user": user} for user in ("ann", "bo", "ann", "eve", "ann")]
    for lines, wanted in ((named, 0), ([*named, line], 1)):
        path = write_records(tmp_path / "own.jsonl", lines)
        told = cli.printed(capsys, "data", "describe", str(path))
        assert "users                     3" in told
        assert "utterances per user: min 1, median 1, max 3" in told
        assert ("without a user            1" in told) == bool(wanted)


def lines_of(name, size, seed):
    return [" ".join(utterance.tokens) for utterance in make_utterances(name, size=size, seed=seed)]


def test_stand_ins_and_paths_are_written_one_after_the_other(tmp_path, capsys):
    mine = tmp_path / "mine.jsonl"
    mine.write_text('{"tokens": ["call", "mum"], "slots": ["O", "O"], "intent": "call"}\n')
    out = tmp_path / "out" / "text.txt"
    assert main(["data", "text", "health", str(mine), "video", "--size", "30", "--seed", "4",
                 "--out", str(out)]) == 0  # fmt: skip
    lines = out.read_text().splitlines()
    assert lines == [*lines_of("health", 30, 4), "call mum", *lines_of("video", 30, 4)]
    said = " ".join(capsys.readouterr().out.split())  # the path decides where a line ends
    assert "61 lines from health" in said


def test_a_public_corpus_is_found_by_its_name(corpora, tmp_path, monkeypatch):
    monkeypatch.setenv("EDP_MX_DATA", str(corpora))
    out = tmp_path / "atis.txt.gz"
    assert main(["data", "text", "atis", "--out", str(out)]) == 0
    lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    assert lines == [" ".join(utterance.tokens) for utterance in read_utterances(corpora / "atis")]


@pytest.mark.parametrize("action", ["text", "merge"])
def test_a_file_that_is_there_is_not_written_over_unless_one_says_so(action, tmp_path, capsys):
    mine = tmp_path / "mine.jsonl"
    mine.write_text("what nobody has twice")
    given = ["data", action, "health", "--out", str(mine)]
    assert main(given) == 2
    assert "mine.jsonl is there already; name another file with --out" in capsys.readouterr().err
    assert mine.read_text() == "what nobody has twice" and list(tmp_path.iterdir()) == [mine]
    small = ["--size", "30"] if action == "text" else []
    given[2] = "health" if action == "text" else "health:30"
    assert main([*given, *small, "--force"]) == 0
    assert len(mine.read_text().splitlines()) == 30
