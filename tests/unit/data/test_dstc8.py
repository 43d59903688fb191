"""DSTC8's own layout: the real dialogues as JSON lines have them, and small ones made by hand."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.readers import files_of, read_utterances, stream_utterances
from edp_mx.data.readers.dstc8 import Span, tag_spans


def action(act, *values):
    return {"act": act, "slot": "", "values": list(values)}


def frame(*actions, spans=()):
    slots = [{"slot": slot, "start": start, "exclusive_end": end} for start, end, slot in spans]
    return {"service": "Rides_1", "actions": list(actions), "slots": slots}


def turn(text, *frames, speaker="USER"):
    return {"speaker": speaker, "utterance": text, "frames": list(frames)}


def dialogue(name, *turns):
    return {"dialogue_id": name, "services": ["Rides_1"], "turns": list(turns)}


def write(folder, *dialogues, name="dialogues_001.json"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(dialogues))
    return folder


HELLO = turn("Thanks!", frame(action("THANK_YOU")))


def test_the_real_dialogues_are_those_of_the_json_lines(real_corpus):
    folder = real_corpus("dstc8")
    if not (folder / "raw").is_dir() or not (folder / "utterances.jsonl.gz").is_file():
        pytest.skip(f"{folder} does not hold both utterances.jsonl.gz and raw/")
    read = defaultdict(list)
    for utterance in read_utterances(folder / "raw"):
        read[utterance.user].append(
            {"tokens": [*utterance.tokens], "slots": [*utterance.slots],
             "intent": utterance.intent, "user": utterance.user}
        )  # fmt: skip
    wanted = defaultdict(list)
    with gzip.open(folder / "utterances.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["user"] in read:
                wanted[record["user"]].append(record)
    assert len(read) == 24 and sum(map(len, read.values())) == 287
    assert read == wanted
    # beside the folder `raw`, the JSON lines are what is read
    ((_, file),) = files_of(folder)
    assert file.name == "utterances.jsonl.gz"
    assert {part for part, _ in stream_utterances(folder / "raw")} == {"train"}


def test_parts_users_and_ids(tmp_path, monkeypatch):
    for part in ("train", "dev", "test"):
        write(tmp_path / "dstc8" / part, dialogue("1_00000", HELLO), dialogue("1_00001", HELLO))
        (tmp_path / "dstc8" / part / "schema.json").write_text("[]")
    write(tmp_path / "dstc8" / "train", dialogue("2_00000", HELLO), name="dialogues_002.json")
    read = [(part, u.id, u.user) for part, u in stream_utterances(tmp_path / "dstc8")]
    assert read == [
        ("train", "train/1_00000/1", "1_00000"),
        ("train", "train/1_00001/1", "1_00001"),
        ("train", "train/2_00000/1", "2_00000"),
        ("validation", "dev/1_00000/1", "dev_1_00000"),
        ("validation", "dev/1_00001/1", "dev_1_00001"),
        ("test", "test/1_00000/1", "test_1_00000"),
        ("test", "test/1_00001/1", "test_1_00001"),
    ]
    assert [name for name, _ in files_of(tmp_path / "dstc8")] == [
        "dstc8 train train dialogues_001.json",
        "dstc8 train train dialogues_002.json",
        "dstc8 validation dev dialogues_001.json",
        "dstc8 test test dialogues_001.json",
    ]
    monkeypatch.setenv("EDP_MX_DATA", str(tmp_path))
    corpus = load_corpus(DataConfig(corpus="dstc8", split="own"))
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (3, 2, 2)
    assert [u.id for u in read_utterances(tmp_path / "dstc8" / "dev")] == ["1_00000/1", "1_00001/1"]
    alone = tmp_path / "dstc8" / "dev" / "dialogues_001.json"
    assert [u.user for u in read_utterances(alone)] == ["1_00000", "1_00001"]


def test_only_what_the_user_says_is_read(tmp_path):
    folder = write(
        tmp_path,
        dialogue("1_0", HELLO, turn("Where to?", speaker="SYSTEM"), turn(" ", frame()), HELLO),
    )
    assert [u.id for u in read_utterances(folder)] == ["1_0/1", "1_0/4"]


@pytest.mark.parametrize(
    ("frames", "intent"),
    [
        ([frame(action("INFORM")), frame(action("INFORM_INTENT", "GetRide"))], "GetRide"),
        ([frame(action("INFORM_INTENT", "A"), action("INFORM_INTENT", "B"))], "A"),
        ([frame(action("THANK_YOU"), action("NEGATE"))], "negate"),
        ([frame(action("INFORM")), frame(action("AFFIRM_INTENT"))], "affirm_intent"),
        ([frame(action("GOODBYE"), action("REQUEST", "x"), action("INFORM"))], "request"),
        ([frame(action("REQUEST"), action("SELECT"), action("REQUEST_ALTS"))], "request_alts"),
    ],
)
def test_the_intent_is_announced_or_the_first_act(tmp_path, frames, intent):
    (utterance,) = read_utterances(write(tmp_path, dialogue("1_0", turn("So.", *frames))))
    assert utterance.intent == intent


@pytest.mark.parametrize(
    ("text", "spans", "tokens", "tags"),
    [
        ("What's NEW at 18:30?", [], "what's new at 18:30 ?", "O O O O O"),
        ("no.Red Jade..", [(3, 11, "name")], "no. red jade . .", "O B-name I-name O O"),
        ("Send $24 to #1", [(5, 8, "sum")], "send $24 to #1", "O B-sum O O"),
        ("a b c", [(0, 1, "x"), (2, 5, "x")], "a b c", "B-x B-x I-x"),
        ("New York", [(0, 8, "city"), (0, 8, "area")], "new york", "B-city I-city"),
        ('2 o"clock', [(0, 9, "at")], '2 o " clock', "B-at I-at I-at I-at"),
    ],
)
def test_tokens_and_tags_by_hand(text, spans, tokens, tags):
    assert tag_spans(text, [Span(*span) for span in spans]) == (tokens.split(), tags.split())


@given(st.text("aB1 .,'$?-é", max_size=30), st.data())
def test_no_character_is_lost_and_spans_are_covered_exactly(text, data):
    ends = data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))))
    start, end = sorted(ends)
    tokens, tags = tag_spans(text, [Span(start, end, "x")])
    assert "".join(tokens) == "".join(text.lower().split())
    marked = "".join(token for token, tag in zip(tokens, tags) if tag != "O")
    assert marked == "".join(text[start:end].lower().split())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[", r"dialogues_001\.json, line 1: not JSON"),
        ("{}", r"dialogues_001\.json: expected a list of dialogues"),
        ('[{"turns": []}]', r'json: expected "dialogue_id" \(str\)'),
        ('[{"dialogue_id": "1_0"}]', r'dialogue 1_0: expected "turns" \(list\)'),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path, content, complaint):
    (write(tmp_path) / "dialogues_001.json").write_text(content)
    refused(tmp_path, complaint)


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"speaker": "USER"}, '"utterance"'),
        (turn("Hi", {"slots": []}), '"actions"'),
        (turn("Hi", {"actions": []}), '"slots"'),
        (turn("Hi", frame(action("NOD"))), r"no act that is known \(NOD\)"),
        (turn("Hi", frame(action("INFORM_INTENT"))), "expected an intent"),
        (turn("Hi", frame(action("INFORM"), spans=[(0, None, "x")])), '"exclusive_end"'),
    ],
)
def test_a_broken_turn_names_file_dialogue_and_turn(tmp_path, broken, complaint):
    write(tmp_path, dialogue("1_0", HELLO, broken))
    refused(tmp_path, rf"001\.json, dialogue 1_0, turn 2: .*{complaint}")
