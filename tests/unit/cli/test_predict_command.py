"""`edp-mx predict -`: one answer for each line, whatever the line is."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cli

from edp_mx.cli.predict import _answer_stream, answers, at_hand, read_requests
from edp_mx.data.tokenization import WORD_OR_PUNCTUATION
from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import spans_of
from edp_mx.tasks.intent_slot.task import Understanding


class Trained:
    """Says "call" of everything, and finds a slot in every word but the first."""

    tokens_of, reads_second = staticmethod(str.split), False

    def predict(self, token_lists):
        return [
            Understanding(
                Utterance(tuple(tokens), ("O", *("B-who",) * (len(tokens) - 1)), "call"),
                0.5,
                (0.25,) * (len(tokens) - 1),
            )
            for tokens in token_lists
        ]


def answered(text, as_json=True, cut=str.split, **more):
    """The lines that a stream gets, in whatever chunks it arrives."""
    chunks = at_hand(read_requests(io.StringIO(text, newline="\n"), cut, **more))
    return [line for chunk in chunks for line in answers(Trained(), chunk, as_json=as_json)]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "line 1: empty"),
        (" \t", "line 1: empty"),
        ("{torn", "line 1: begins like JSON and is not ("),
        ('{"text": "a"} b', "line 1: begins like JSON and is not ("),
        ('{"text": "a", "score": NaN}', "line 1: begins like JSON and is not ("),
        ("{" + '"a":[' * 100_000, "line 1: begins like JSON and is not ("),
        ("call \udcff", "line 1: not UTF-8 text"),
        *((line, 'line 1: needs a word in {"text": "…"} or {"tokens": ["…"]}')
          for line in ('{"tokens": 5}', '{"tokens": []}', '{"tokens": [1]}', '{"tokens": [" "]}',
                       '{"text": ""}', '{"text": 7}', '{"tokens": null}', "{}")),
    ],
)  # fmt: skip
def test_a_broken_line_gets_an_answer_and_the_next_is_read(line, error):
    broken, whole = map(json.loads, answered(f"{line}\ncall mum\n"))
    assert broken["error"].startswith(error) and "intent" not in broken
    assert whole["tokens"] == ["call", "mum"] and "error" not in whole
    broken, whole = answered(f"{line}\ncall mum\n", as_json=False)
    assert broken.startswith(f"error: {error}") and whole == "call: call [who: mum]"


@pytest.mark.parametrize("line", ["call mum?", '{"text": "call mum?"}'])
def test_a_text_is_cut_as_the_run_says_and_tokens_are_not(line):
    cut = WORD_OR_PUNCTUATION.findall
    assert json.loads(answered(line, cut=cut)[0])["tokens"] == ["call", "mum", "?"]
    whole = answered('{"tokens": ["call", "New York?"]}', cut=cut)[0]
    assert json.loads(whole)["tokens"] == ["call", "New York?"]


@pytest.mark.parametrize("line", ["call mum", '{"text": "call mum"}', '{"tokens": ["call", "mum"]}',
                                  '{"tokens": null, "text": "call mum"}'])  # fmt: skip
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_line_may_be_text_or_an_object_behind_a_byte_order_mark(line, mark):
    (answer,) = map(json.loads, answered(f"{mark}{line}\n"))
    assert answer["tokens"] == ["call", "mum"] and "error" not in answer


def test_the_other_keys_of_a_line_are_kept():
    given = {"id": 7, "text": "hang up", "intent": "other", "session": {"at": [1]}, "error": "old"}
    (found,) = map(json.loads, answered(json.dumps(given)))
    assert found["id"] == 7 and found["session"] == {"at": [1]} and found["text"] == "hang up"
    assert found["intent"] == "call" and found["slots"] == ["O", "B-who"] and "error" not in found
    (found,) = map(json.loads, answered('{"id": "a", "words": "x"}'))
    assert found["id"] == "a" and found["words"] == "x" and found["error"]


@pytest.mark.parametrize("second", ['"be quiet"', '["be", "quiet"]'])
def test_a_second_text_is_read_where_the_model_reads_two(second):
    line = f'{{"text": "hang up", "second": {second}, "id": 7}}'
    (found,) = map(json.loads, answered(line, reads_second=True))
    assert found["tokens"] == ["hang", "up", "[SEP]", "be", "quiet"] and found["id"] == 7
    (refused,) = map(json.loads, answered(line, reads_second=False))
    assert refused["error"].startswith('line 1: "second" needs a word, and a model of two texts')
    (kept,) = map(json.loads, answered(line))  # by an older export, which does not say
    assert kept["tokens"] == ["hang", "up"]


@pytest.mark.parametrize("second", ['""', "null", "5", "[1]"])
def test_a_second_that_is_no_text_is_a_key_unless_two_texts_are_read(second):
    line = f'{{"text": "hang up", "second": {second}}}'
    (refused,) = map(json.loads, answered(line, reads_second=True))
    (kept,) = map(json.loads, answered(line, reads_second=False))
    assert '"second" needs a word' in refused["error"] and kept["tokens"] == ["hang", "up"]
    (alone,) = map(json.loads, answered("call mum", reads_second=True))
    assert alone["tokens"] == ["call", "mum"]


def test_a_record_of_one_text_is_refused_where_the_model_reads_two():
    """Its second text may stand under the name that the training corpus had for it."""
    lines = '{"text": "hang up", "hyp": "be quiet"}\n{"tokens": ["hang", "up", "[SEP]", "now"]}'
    refused, kept = map(json.loads, answered(lines, reads_second=True))
    assert 'this is one: give the other as "second", or behind [SEP]' in refused["error"]
    assert kept["tokens"] == ["hang", "up", "[SEP]", "now"]


@settings(max_examples=30)
@given(st.lists(st.text(max_size=8), max_size=9), st.booleans())
def test_there_are_as_many_answers_as_lines(texts, as_json):
    texts = [text.replace("\n", " ") for text in texts]
    found = answered("".join(f"{text}\n" for text in texts), as_json)
    assert len(found) == len(texts) and all("\n" not in line for line in found)


def test_whatever_bytes_come_each_line_has_one_answer_in_utf_8(monkeypatch, capsysbinary):
    monkeypatch.setenv("EDP_MX_MAX_LINE", "40")
    lines = [b'{"text": "call \\ud800"}', b'{"text": "a", "at": 1e999}', b"a" * 41, b"b" * 40,
             b"\xff\xfe", b"\x00\x1b[2J", b"a\x85b\xe2\x80\xa8c", b"\xc3" * 3000,
             b"call mum"]  # fmt: skip
    stream = io.BytesIO(b"\n".join(lines))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream, encoding="ascii"))
    _answer_stream(Trained(), as_json=True)
    found = capsysbinary.readouterr().out.decode("utf-8").split("\n")
    assert found.pop() == "" and len(found) == len(lines)
    told = [json.loads(line).get("error", "") for line in found]
    assert "half a character" in told[0] and "more than a number can hold" in told[1]
    assert told[2] == "line 3: longer than 40 characters" and told[4] == "line 5: not UTF-8 text"
    assert told[7] == "line 8: longer than 40 characters" and not told[3] and not told[8]


def test_a_byte_that_is_not_utf_8_spoils_its_own_line(monkeypatch, capsys):
    stream = io.BytesIO(b"call \xff\r\ncall mum\r\n\ncall \xc3\xa9va")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream, encoding="ascii"))
    _answer_stream(Trained(), as_json=True)
    printed = capsys.readouterr()
    broken, whole, empty, last = map(json.loads, printed.out.splitlines())
    assert broken == {"error": "line 1: not UTF-8 text"} and empty == {"error": "line 3: empty"}
    assert whole["tokens"] == ["call", "mum"] and last["tokens"] == ["call", "éva"]
    assert printed.err.startswith("4 lines in ") and "; 2 without a prediction" in printed.err


def test_spans_have_their_text_and_open_with_b():
    (understood,) = Trained().predict([["call", "mum", "now"]])
    assert [(s["text"], s["confidence"]) for s in understood.spans()] == [
        ("mum", 0.25), ("now", 0.25)]  # fmt: skip
    assert len(spans_of(understood.utterance.slots)) == 2


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        ((), ["call", "mum", "error: utterance 2 needs at least one word"]),
        (("--json",), ['"intent": "call"', '{"error": "utterance 2 needs at least one word"}']),
    ],
)
def test_an_empty_utterance_spares_the_others_on_the_command_line(
    options, answers, monkeypatch, capsys
):
    monkeypatch.setattr("edp_mx.runs.trained_run.load_run", lambda _: Trained())
    assert cli.run("predict", "RUN", "call mum", " ", *options) == 2
    said = capsys.readouterr().out
    assert all(answer in said for answer in answers)
    assert cli.run("predict", "RUN", "call mum", *options) == 0
    assert cli.run("predict", "RUN", "", *options) == 2
