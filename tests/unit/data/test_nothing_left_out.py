"""No reader drops a part of a corpus, or takes one of two values for another, without a word."""

import json

import pytest
from support.refusals import one_sentence, refused
from support.replies import PERSONA_CHAT, SPOKEN_TURN, TRIPLES, TURNS

from edp_mx.data.readers import files_of, read_utterances
from edp_mx.data.users import users_of
from edp_mx.errors import UserError

LINE = '{"tokens": ["call"], "slots": ["O"], "intent": "call", "user": "ann"}\n'
SNIPS = json.dumps({"Play": [{"data": [{"text": "play"}]}]})
NLU_EVAL = "scenario;intent;answer_annotation\nalarm;set;wake me\n"
TABLE = "text,slots,intent\ncall,O,call\n"
RASA = "nlu:\n- intent: call\n  examples: |\n    - call [mum](who)\n"
LAYOUTS = {  # the files of a corpus in each layout
    "three_files": {
        f"{part}/{name}": text
        for part in ("train", "test")
        for name, text in (("seq.in", "a\n"), ("seq.out", "O\n"), ("label", "x\n"), ("user", "u\n"))
    },
    "json_lines": {f"{part}.jsonl": LINE for part in ("train", "valid", "test")},
    "table": {"a.csv": TABLE, "b.csv": TABLE},
    "snips_json": {
        f"{intent}/{part}_{intent}{end}.json": SNIPS
        for intent in ("Play", "Find")
        for part, end in (("train", "_full"), ("validate", ""))
    },
    "nlu_eval": {f"KFold_{fold}/testset/csv/alarm_set.csv": NLU_EVAL for fold in (1, 2)},
    "dstc8": {
        f"{part}/dialogues_00{i}.json": json.dumps(
            [{"dialogue_id": f"{i}", "turns": [SPOKEN_TURN]}]
        )
        for part in ("train", "dev", "test")
        for i in (1, 2)
    },
    "system_turns": {f"{part}.jsonl": json.dumps(TURNS[0]) for part in ("train", "dev", "test")},
    "e2e": {
        f"{part}.csv": "mr,ref\nname[a],a\n" for part in ("trainset", "devset", "testset_w_refs")
    },
    "dart_json": {
        f"dart-v1.1.1-full-{part}.json": json.dumps(TRIPLES) for part in ("train", "dev", "test")
    },
    "conll": {f"{part}.conll": "# intent: x\na O\n" for part in ("train", "dev", "test")},
    "rasa_yaml": {f"{part}.yml": RASA for part in ("train", "test")},
    "persona_chat": {f"{part}_self_original.txt": PERSONA_CHAT for part in ("train", "valid")},
}


@pytest.mark.parametrize("layout", ["json_lines", "table", "conll", "e2e"])
def test_hidden_files_are_none_of_a_corpus(tmp_path, layout):
    for name, text in LAYOUTS[layout].items():
        (tmp_path / name).write_text(text)
    whole = read_utterances(tmp_path)
    for name, text in LAYOUTS[layout].items():
        (tmp_path / f".{name}").write_text(text)  # as an editor or a copy leaves behind
    assert read_utterances(tmp_path) == whole


def test_files_in_two_layouts_are_not_read_in_part(tmp_path):
    (tmp_path / "train.csv").write_text(TABLE)
    for part in ("valid", "test"):
        (tmp_path / f"{part}.jsonl").write_text(LINE)
    said = r"two layouts, valid.jsonl \(json_lines\) and train.csv \(table\): take one kind away"
    refused(tmp_path, said)
    assert len(read_utterances(tmp_path, "table")) == 1


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_link_to_nothing_in_the_place_of_anything_is_refused(layout, tmp_path):
    folder = tmp_path / "corpus"
    for name, text in LAYOUTS[layout].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    whole = read_utterances(folder)
    assert whole == read_utterances(folder, layout) and files_of(folder)
    places = sorted(folder.rglob("*"))
    for place in places:
        place.rename(tmp_path / "away")
        place.symlink_to(tmp_path / "nowhere")
        for read in (read_utterances, files_of):
            said = one_sentence(".+", read, folder)
            assert str(place) in said or "is in no known layout" in said and len(places) < 3, said
        place.unlink()
        place.symlink_to(tmp_path / "away")  # a link to something is as good as it
        assert read_utterances(folder) == whole
        place.unlink()
        (tmp_path / "away").rename(place)


@pytest.mark.parametrize("name, header", [
    ("a.csv", 'text,slots,text,intent'),
    ("a.tsv", "intent\tslots\ttext\tintent"),
    ("a.csv", "scenario;intent;answer_annotation;intent"),
    ("a.csv", "text,mr,ref,text"),
])  # fmt: skip
def test_two_columns_of_one_name_are_refused(name, header, tmp_path):
    (tmp_path / name).write_text(f"{header}\n")
    twice = "text" if header.startswith("text") else "intent"
    refused(tmp_path / name, rf'{name}, line 1: two columns are named "{twice}"')


def test_columns_without_a_name_may_be_several(tmp_path):
    (tmp_path / "a.csv").write_text("text,,slots,intent,\ncall,1,O,call,2\n")
    assert len(read_utterances(tmp_path)) == 1


def test_a_key_that_a_line_has_twice_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINE + LINE.replace('"O"]', '"O"], "slots": ["B-x"]'))
    refused(tmp_path, r"a\.jsonl, line 2: .*the key 'slots' is there twice")


NAMES = ["alice", "alice ", " alice", "\talice\u00a0", "Alice", "jos\u00e9", "jose\u0301"]


def write_json_lines(folder, users):
    lines = [LINE.replace('"ann"', json.dumps(user)) for user in users]
    (folder / "a.jsonl").write_text("".join(lines))


def write_table(folder, users):
    rows = [f'call,O,call,"{user}"\n' for user in users]
    (folder / "a.csv").write_text("".join(["text,slots,intent,user\n", *rows]))


def write_three_files(folder, users):
    count = len(users)
    for name, word in (("seq.in", "call"), ("seq.out", "O"), ("label", "call")):
        (folder / name).write_text(f"{word}\n" * count)
    (folder / "user").write_text("".join(f"{user}\n" for user in users))


WRITERS = [write_json_lines, write_table, write_three_files]


@pytest.mark.parametrize("write", WRITERS)
def test_blanks_and_forms_of_accents_tell_no_users_apart(write, tmp_path):
    write(tmp_path, NAMES)
    utterances = read_utterances(tmp_path)
    assert [u.user for u in utterances] == [*["alice"] * 4, "Alice", *["jos\u00e9"] * 2]
    assert users_of(utterances).tolist() == [0, 0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize("write", WRITERS)
def test_a_name_of_blanks_is_nobody_s(write, tmp_path):
    write(tmp_path, ["ann", " \u00a0"])
    with pytest.raises(UserError, match="line 2: the user is empty|'a.csv/3' names no user"):
        users_of(read_utterances(tmp_path))
