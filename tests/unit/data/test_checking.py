"""All errors of a corpus at once, in every layout, and the sound utterances in a file."""

import gzip
import json

import pytest
from support.refusals import refused
from support.replies import SPOKEN_TURN, TRIPLES, TURNS

from edp_mx.data.checking import MOST_NAMED, check
from edp_mx.data.readers import read_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

GOOD = {"tokens": ["call"], "slots": ["O"], "intent": "call"}
LINE = json.dumps(GOOD)
# Files, the places of their errors, and how many utterances are sound.
BROKEN = {
    "json_lines": (
        {"a.jsonl": f'{LINE}\n{{\n[]\n{LINE}\n{LINE.replace("O", "X")}\n\n{LINE}'},
        ["line 2: not JSON", "line 3: not an object", "line 5: 'X' is not a BIO"],
        3,
    ),
    "table": (
        {"a.csv": 'text,slots,intent\na,O,x\n"a" b,O,x\na,O\na,,x\na b,O,x\nb,O,y\n'},
        ["line 3: not a row", "line 4: 2 columns", "line 5: 1 token but", "line 6: 2 tokens"],
        2,
    ),
    "tabs": (
        {"a.tsv": 'text\tslots\tintent\n"a\tO\tx"\nb\tO\ty\n'},
        ["line 2: a cell that begins with a quotation mark"],
        1,
    ),
    "three_files": (
        {"seq.in": "a\nb b\n\nc\n", "seq.out": "O\nO\n\nO\n", "label": "x\nx\n\nz\n"},
        ["line 2: 2 tokens", "line 3: the utterance is empty"],
        2,
    ),
    "clinc_json": (
        {"data_full.json": json.dumps({f"{oos}{part}": [["a", "x"], ["b"], ["", "x"]]
                                       for part in ("train", "val", "test")
                                       for oos in ("", "oos_")})},
        ["utterance 2 of train", "utterance 3 of train", "utterance 2 of oos_train"],
        6,
    ),
    "snips_json": (
        {"a.json": json.dumps({"Play": [{"data": []}, {}, {"data": [{"text": "a"}]}]})},
        ["utterance 1 of Play: the utterance is empty", "utterance 2 of Play: the list"],
        1,
    ),
    "nlu_eval": (
        {"a.csv": "scenario;intent;answer_annotation\na;b;[c\na;b\na;b;c\n"},
        ["line 2: unbalanced", "line 3: 2 columns"],
        1,
    ),
    "dstc8": (
        {"dialogues_001.json": json.dumps(
            [{"dialogue_id": "1", "turns": [SPOKEN_TURN, {"speaker": "USER"}, SPOKEN_TURN]}])},
        ['turn 2: expected "utterance"'],
        2,
    ),
    "system_turns": (
        {"a.jsonl": "\n".join(json.dumps(each) for each in (TURNS[0], {**TURNS[0], "turn": "1"}))},
        ['line 2: "turn" is missing'],
        1,
    ),
    "e2e": (
        {"trainset.csv": "mr,ref\nname[a],a\nname,a\nname[b],b\n"},
        ['line 3: "mr" is not of the form'],
        2,
    ),
    "dart_json": (
        {"dart-a.json": json.dumps([{**TRIPLES[0], "tripleset": []}, TRIPLES[0]])},
        ['record 1: the list "tripleset" is missing'],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", sorted(BROKEN))
def test_each_reader_goes_on_to_its_next_record(layout, tmp_path):
    files, places, sound = BROKEN[layout]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    path = tmp_path / next(iter(files)) if len(files) == 1 else tmp_path
    found = check(path)
    for place, error in zip(places, found.errors):
        assert place in error and str(tmp_path) in error
    assert found.utterances == sound and found.unread == 0
    assert found.num_errors == found.left_out == len(found.errors) >= len(places)
    assert refused(path, ".") == found.errors[0]  # which is all that a reader says otherwise


def test_a_sound_corpus_is_counted_and_the_first_fifty_errors_are_named(tmp_path):
    (tmp_path / "train.jsonl").write_text(f"{LINE}\n" * 3)
    (tmp_path / "test.jsonl").write_text(LINE.replace('"O"', '"I-who"'))
    found = check(tmp_path)
    assert found.parts == {"train": 3, "test": 1} and found.num_errors == 0
    assert (found.intents, found.slots) == ({"call"}, {"who"})
    (tmp_path / "test.jsonl").write_text("{\n" * 70)  # and so the whole part is missing
    found = check(tmp_path)
    assert (found.num_errors, len(found.errors), found.utterances) == (71, MOST_NAMED, 3)


def test_sound_utterances_are_written_as_they_are(tmp_path):
    said = {"tokens": ["a\u00a0b", "é"], "slots": ["B-x", "O"], "intent": "c  d", "user": "ann"}
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, (said, {}, {**said, "id": "7"}))))
    out = tmp_path / "out.jsonl.gz"
    found = check(tmp_path / "a.jsonl", out=out)
    assert (found.utterances, found.left_out, found.is_written) == (2, 1, True)
    read = read_utterances(out)
    assert read == [Utterance(("a\u00a0b", "é"), ("B-x", "O"), "c  d")] * 2
    assert [(u.id, u.user) for u in read] == [("a.jsonl/1", "ann"), ("7", "ann")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b'text,slots,intent\na,O,x\n"b,O,x\nc,O,x\n'),  # a quotation mark left open
        ("a.csv", b"text,slots,intent\na,O,x\n" + b"b" * 2**21),  # a line that is too long
        ("a.csv.gz", gzip.compress(b"text,slots,intent\n" + b"a,O,x\n" * 9999)[:-20]),
        ("a.jsonl.gz", gzip.compress(f"{LINE}\n".encode() * 9999)[:-20]),
        ("a.jsonl", f"{LINE}\n".encode() + b"b" * 2**21),
    ],
)
def test_nothing_is_written_where_a_file_has_no_readable_end(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    out = tmp_path / "out.jsonl"
    found = check(tmp_path / name, out=out)
    assert found.unread == 1 and not found.is_written and not out.exists()
    assert found.errors[-1].endswith("; what follows it in this file was not read")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_torn_file_of_dialogues_does_not_hide_the_next(tmp_path):
    (tmp_path / "dialogues_001.json").write_text("[{")
    dialogue = {"dialogue_id": "2", "turns": [SPOKEN_TURN, {"speaker": "USER"}]}
    (tmp_path / "dialogues_002.json").write_text(json.dumps([dialogue]))
    found = check(tmp_path)
    assert (found.utterances, found.unread, found.left_out) == (1, 1, 1)
    assert [each.count(f"dialogues_00{i}") for i, each in enumerate(found.errors, 1)] == [1, 1]


def test_lines_that_are_not_utf8_are_errors_of_their_own_rows(tmp_path):
    table = b'text,slots,intent\na\xff,O,x\n"a\n\xfe",O,x\nb,O,x\n'
    for name, content in (("a.jsonl", f"{LINE}\n".encode() + b"\xff\n" + LINE.encode()),
                          ("a.csv", table.replace(b'"a\n\xfe"', b"\xfe"))):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        found = check(tmp_path / name)
        assert found.unread == 0 and all("not UTF-8" in each for each in found.errors)
        assert found.utterances == (2 if name == "a.jsonl" else 1)
    (tmp_path / "a.csv").write_bytes(table)
    found = check(tmp_path / "a.csv")  # whose second row is of two lines
    assert found.num_errors == 2 and found.unread == 1 and "line 4: not UTF-8" in found.errors[1]


def test_ids_and_users_are_those_of_the_whole_corpus(tmp_path):
    lines = [{**GOOD, "id": "1"}, {**GOOD, "id": "1"}, {**GOOD, "user": "ann"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = check(tmp_path / "a.jsonl")
    assert "the id '1' occurs again" in found.errors[0]
    assert "no user is named for 1 utterance, though for others" in found.errors[1]
    assert (found.utterances, found.left_out, found.num_errors) == (2, 1, 2)


def test_parts_are_not_joined_in_a_file(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.jsonl").write_text(LINE)
    with pytest.raises(UserError, match="has several parts, which one file would join"):
        check(tmp_path, out=tmp_path / "out" / "a.jsonl")
    assert not list((tmp_path / "out").iterdir())
