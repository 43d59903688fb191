"""`edp-mx data` on text to generate: what is counted, written and refused."""

import json
from functools import partial

import pytest
from support import cli
from support.refusals import one_sentence
from support.replies import PERSONA_CHAT, TURNS, write_tables, write_triples, write_turns

from edp_mx.data.readers import read_utterances
from edp_mx.data.utterance import REPLY

run = partial(cli.run, "data")


def persona_chat(path):
    path.write_text(PERSONA_CHAT)
    return path


CORPORA = {  # file → how it is written, utterances, users
    "turns.jsonl": (write_turns, 3, 2),
    "trainset.csv": (write_tables, 3, 0),
    "dart-v1.1.1-full-train.json": (write_triples, 3, 0),
    "train_self_original.txt": (persona_chat, 4, 2),
}


@pytest.mark.parametrize("name", CORPORA)
def test_describe_counts_each_published_form(name, tmp_path, capsys):
    write, utterances, users = CORPORA[name]
    assert run("describe", write(tmp_path / name), "--json", "--show") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["utterances"], told["users"]) == (utterances, users)
    assert told["intents"] == {"reply": utterances} and not told["slots"]
    assert all(REPLY in each["tokens"] for each in told["examples"])


def test_describe_reads_the_context_where_that_is_said(tmp_path, capsys):
    path = write_turns(tmp_path / "turns.jsonl")
    assert run("describe", path, "--columns", "prompt=context", "--show") == 0
    assert "reply: user: I am hungry. <|reply|> In which city?" in capsys.readouterr().out
    one_sentence("must be acts or context", run, "describe", path, "--columns", "prompt=text")


def test_describe_reads_the_columns_of_ones_own_table(tmp_path, capsys):
    path = write_tables(tmp_path / "mine.csv", [("who ?", "me")], ("question", "answer"))
    assert run("describe", path, "--columns", "prompt=question", "reply=answer", "--show") == 0
    assert "reply: who ? <|reply|> me" in capsys.readouterr().out


def test_text_words_and_merged_corpora_keep_both_sides(tmp_path):
    turns = write_turns(tmp_path / "turns.jsonl")
    assert run("text", turns, "--out", tmp_path / "a.txt") == 0
    assert (tmp_path / "a.txt").read_text().splitlines()[0] == (
        "restaurants: request city <|reply|> In which city?"
    )
    assert run("words", turns, "--public", "--out", tmp_path / "words.txt") == 0
    assert {"request", "which"} < set((tmp_path / "words.txt").read_text().split())
    assert run("merge", turns, "--out", tmp_path / "merged.jsonl") == 0
    merged = {each.tokens for each in read_utterances(tmp_path / "merged.jsonl")}
    assert merged == {each.tokens for each in read_utterances(turns)}


def test_a_broken_row_is_one_sentence_with_file_and_line(tmp_path, capsys):
    path = write_turns(tmp_path / "turns.jsonl", [*TURNS, {**TURNS[0], "acts": [["a"]]}])
    one_sentence(r'turns\.jsonl, line 4: "acts" is not a list of', run, "describe", path)
