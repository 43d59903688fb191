"""`edp-mx data check`: its lines, its exit code, and the file of --skip-bad."""

import json
from pathlib import Path

import pytest
from support.commands import edp_mx

TABLE = "text,intent,slots\ncall mum,call,O B-who\n"
BAD = "call,call,O O\n"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.csv"
    path.write_text(TABLE + BAD * 2)
    return path


def test_errors_come_with_their_places_and_exit_code_2(mine):
    said = edp_mx("data", "check", "mine.csv", code=2).stdout.splitlines()
    assert said == [
        "mine.csv, line 3: 1 token but 2 slot tags",
        "mine.csv, line 4: 1 token but 2 slot tags",
        "mine.csv: 2 errors; without an error is 1 utterance, 1 intent, 1 slot type",
    ]
    mine.write_text(TABLE + BAD * 60)
    said = edp_mx("data", "check", "mine.csv", code=2).stdout.splitlines()
    assert len(said) == 52 and said[50] == "and 10 more errors"


def test_what_was_read_is_said_if_all_is_well(mine):
    mine.write_text(TABLE.replace("text", "said"))
    said = edp_mx("data", "check", "mine.csv", "--columns", "text=said").stdout
    assert said == "mine.csv: no errors in 1 utterance, 1 intent, 1 slot type\n"


def test_sound_utterances_are_written_and_those_left_out_are_counted(mine, tmp_path):
    said = edp_mx("data", "check", "mine.csv", "--skip-bad", "out.jsonl", code=2).stdout
    assert said.endswith("out.jsonl  1 utterance; 2 records with an error left out\n")
    assert edp_mx("data", "check", "out.jsonl").stdout.startswith("out.jsonl: no errors in 1 utt")
    facts = json.loads(
        edp_mx("data", "check", "mine.csv", "--skip-bad", "out.jsonl", "--force", "--json",
               code=2).stdout
    )  # fmt: skip
    assert facts["left_out"] == 2 and facts["is_written"] and "mum" not in str(facts)
    mine.write_text(TABLE + '"call')
    said = edp_mx("data", "check", "mine.csv", "--skip-bad", "b.jsonl", "--force", code=2).stdout
    assert said.endswith("b.jsonl  1 utterance; 1 record with an error left out\n")


def test_nothing_is_written_that_would_be_refused_for_its_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = {"tokens": ["stop"], "slots": ["O"], "intent": "x"}
    lines = [{**whole, "user": "ann"}, whole, {"tokens": 3}]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    said = edp_mx("data", "check", "mine.jsonl", "--skip-bad", "out.jsonl", code=2).stdout
    assert "no user is named for 1 utterance" in said
    assert "out.jsonl: nothing was written, because" in said and not Path("out.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["nowhere"], "nowhere: no such file"),
        (["mine.csv", "--skip-bad", "out.csv"], "name a file that ends in .jsonl or .jsonl.gz"),
        (["empty.jsonl"], "empty.jsonl holds no utterances"),
        (["empty.jsonl", "--skip-bad", "empty.jsonl"], "name another file with --skip-bad"),
        (["empty.jsonl", "--skip-bad", "empty.jsonl", "--force"], "is read as a part of"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(mine, tmp_path, options, sentence):
    (tmp_path / "empty.jsonl").write_text("")
    assert sentence in edp_mx("data", "check", *options, code=2).stderr
