"""`edp-mx data words` and `data labels`: what they write, and what they leave alone."""

import json
from pathlib import Path

import pytest
from support.commands import edp_mx
from support.jsonl import write_jsonl

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.origin import AtHand, sources_of
from edp_mx.data.readers import read_utterances
from edp_mx.data.synthetic import make_utterances
from edp_mx.metrics.quoted_values import missing_values, quoted_values
from edp_mx.metrics.spans import spans_of
from edp_mx.tasks.causal_lm.task import split_reply


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    utterances = list(make_utterances("video", size=40, seed=2))
    write_jsonl(tmp_path / "mine.jsonl", utterances)
    return utterances


def test_words_are_written_the_most_common_first(mine, tmp_path):
    (tmp_path / "text.txt").write_text("zz zz zz\nyy yy\nxx\n")
    said = edp_mx("data", "words", "text.txt", "--public", "--min-count", 2,
                  "--out", "words.txt").stdout  # fmt: skip
    assert (tmp_path / "words.txt").read_text() == "zz\nyy\n" and "2 words of text.txt" in said
    edp_mx("data", "words", "text.txt", "mine.jsonl", "health", "--size", 30, "--out", "all.txt",
           "--public")  # fmt: skip
    words = (tmp_path / "all.txt").read_text().split("\n")
    both = [*mine, *make_utterances("health", size=30, seed=1)]
    assert set(words) == {"", "zz", "yy", "xx", *(token for u in both for token in u.tokens)}


def test_labels_of_a_path_are_marked_and_those_of_a_stand_in_are_not(mine, tmp_path):
    def labels(*options):
        said = edp_mx("data", "labels", *options, "--out", "labels.json", "--force").stdout
        return json.loads((tmp_path / "labels.json").read_text()), said

    marked, said = labels("mine.jsonl")
    assert marked["private"].startswith("read from mine.jsonl; remove this line if all")
    assert marked["intents"] == sorted({u.intent for u in mine}) and '"private"' in said
    assert marked["slots"] == sorted({t[2:] for u in mine for t in u.slots if t != "O"})
    assert "private" not in labels("mine.jsonl", "--public")[0]
    assert "private" not in labels("health", "--size", 50)[0]
    assert "private" in labels("health", "mine.jsonl", "--size", 50)[0]


def test_prompts_name_slots_or_drawn_words_half_of_which_are_replaced(mine, tmp_path):
    lines = ("one two three four five six", "alone", "with <|reply|> inside")
    (tmp_path / "text.txt").write_text("\n".join(lines))
    longer = [utterance for utterance in mine if len(utterance.tokens) > 1]
    said = edp_mx("data", "prompts", "mine.jsonl", "text.txt", "--out", "p.jsonl").stdout
    assert f"{len(longer) + 1} prompts with replies from mine.jsonl, text.txt" in said
    pairs = list(read_utterances(tmp_path / "p.jsonl"))
    assert len(pairs) == len(longer) + 1
    kept = changed = 0
    for utterance, pair in zip(longer, pairs):
        prompt, reply = map(" ".join, split_reply(pair.tokens))
        values, spans = quoted_values(prompt), spans_of(utterance.slots)
        slots = [" ".join(utterance.tokens[s.start : s.end]) for s in spans]
        assert values and not missing_values(prompt, reply)
        if slots:
            assert len(values) == len(slots) and prompt.startswith(f"{utterance.intent}: ")
            assert (reply == " ".join(utterance.tokens)) == (sorted(values) == sorted(slots))
            kept += sum(value in slots for value in values)
            changed += sum(value not in slots for value in values)
    assert 0.4 < changed / (kept + changed) < 0.6
    prompt, reply = map(" ".join, split_reply(pairs[-1].tokens))
    assert prompt.startswith("text: words = ") and set(lines[0].split()) & set(reply.split())
    assert quoted_values(prompt) and not missing_values(prompt, reply)


def test_whoever_is_trained_on_prompts_is_known_to_have_read_their_corpus(mine):
    """Also where the corpus lies elsewhere by then; text that is not of it is told apart."""
    Path("text.txt").write_text("one two\nthree four\n")
    edp_mx("data", "prompts", "mine.jsonl", "text.txt", "--out", "p.jsonl")
    Path("mine.jsonl").rename("moved.jsonl")
    data = DataConfig(corpus="moved", path="moved.jsonl")
    at_hand = AtHand(data, load_corpus(data))
    assert [at_hand.is_in(each) for each in sources_of("p.jsonl")] == [True, False]


@pytest.mark.parametrize(
    "action, options, sentence",
    [
        ("words", ["nowhere"], "nowhere: no such file or folder"),
        ("words", ["mine.jsonl"], "add --public if this is another corpus"),
        ("words", ["lines.txt"], "lines.txt: words of the corpus that you train on with privacy"),
        (
            "words",
            ["mine.jsonl", "--public", "--min-count", 1000],
            "mine.jsonl: no word occurs often enough",
        ),
        ("words", ["health", "--size", 0], "--size is 0; it must be 1 or more"),
        ("words", ["health", "--min-count", 0], "--min-count is 0; it must be 1 or more"),
        ("prompts", ["mine.jsonl", "p.csv"], "p.csv: no text of two words or more that has no"),
        ("labels", ["empty.jsonl"], "empty.jsonl: no utterances"),
        ("labels", ["health", "--seed", -1], "--seed is -1; it must be 0 or more"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(
    mine, action, options, sentence, tmp_path
):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "lines.txt").write_text("call mum\n")
    (tmp_path / "p.csv").write_text("prompt,reply\nfood,Thai food .\n")
    errors = edp_mx("data", action, *options, "--out", "out", code=2).stderr
    assert sentence in errors.splitlines()[-1] and not (tmp_path / "out").exists()


NAMED = ("--columns", "text=said", "intent=kind")


def test_columns_are_named_as_for_describe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("said,kind,bio\ncall mum,call,O B-who\n")
    edp_mx("data", "labels", "mine.csv", *NAMED, "slots=bio", "--out", "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["intents"], found["slots"]) == (["call"], ["who"])
    edp_mx("data", "words", "mine.csv", *NAMED, "slots=bio", "--public", "--out", "words.txt")
    assert (tmp_path / "words.txt").read_text() == "call\nmum\n"
    edp_mx("data", "text", "mine.csv", *NAMED, "--out", "text.txt")
    assert (tmp_path / "text.txt").read_text() == "call mum\n"
    edp_mx("data", "merge", "mine.csv", *NAMED, "slots=bio", "--out", "all.jsonl")
    (line,) = (tmp_path / "all.jsonl").read_text().splitlines()
    assert json.loads(line)["slots"] == ["O", "B-mine.who"]
    for action in ("labels", "text", "merge"):
        errors = edp_mx("data", action, "mine.csv", "--out", "b.jsonl", code=2).stderr
        assert 'line 1: the column "text" or' in errors


def test_intents_alone_are_read_without_slots_and_a_remark_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("said,kind\ncall mum,call\n")
    edp_mx("data", "labels", "mine.csv", *NAMED, "--out", "a.json")
    assert caplog.text.count("read without slots. There are said, kind; if one of these") == 1
    assert json.loads((tmp_path / "a.json").read_text())["slots"] == []
