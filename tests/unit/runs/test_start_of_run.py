"""What a resumed run is held to."""

import json

import pytest
from support.refusals import one_sentence

from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.start_of_run import refuse_other_start, write_start

PRINTS = {"train": "t", "validation": "v", "test": "s"}
CONFIG = "name: mine\ntraining: {epochs: 3, watchdog_seconds: 600}\n"
START = {
    "fingerprints": PRINTS,
    "vocabulary": {"words": ["call", "mum"], "is_public": True},
    "frozen": "f",
}


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path)
    run.config.write_text(CONFIG)
    write_start(run, num_workers=2, **START)
    return run


def test_the_same_start_is_taken(run):
    refuse_other_start(run, **START)
    assert run.read("environment")["num_workers"] == 2
    assert json.dumps(run.read("environment")["fingerprints"]).count('"t"') == 0  # keyed


@pytest.mark.parametrize(
    "change, words",
    [
        ({"fingerprints": {**PRINTS, "train": "x"}}, "the train part of the corpus is another"),
        ({"fingerprints": {**PRINTS, "test": "x"}}, "the test part"),
        ({"vocabulary": {"words": ["call"], "is_public": True}}, "not the vocabulary of now"),
        ({"frozen": "x"}, "the frozen weights, which come from its start, are other ones now"),
    ],
)
def test_another_start_is_refused_by_its_name(run, change, words):
    said = one_sentence(words, refuse_other_start, run, **{**START, **change})
    assert "put back what the run was begun with" in said


def test_a_changed_setting_and_a_lost_vocabulary_are_noticed(run):
    run.config.write_text(CONFIG.replace("epochs: 3", "epochs: 4"))
    one_sentence(r"config.yaml was changed since it was begun", refuse_other_start, run, **START)
    run.config.write_text(CONFIG)
    (run.path / "vocabulary.json").unlink()
    one_sentence(r"vocabulary.json is missing", refuse_other_start, run, **START)


def test_what_another_machine_keyed_is_not_asked_for(run, monkeypatch, tmp_path):
    monkeypatch.setenv("EDP_MX_KEY", str(tmp_path / "other.key"))
    refuse_other_start(run, **{**START, "fingerprints": dict.fromkeys(PRINTS, "x")})


def test_a_key_that_changes_nothing_may_change(run):
    for changed in ("epochs: 3, watchdog_seconds: 60", "epochs: 3"):
        run.config.write_text(CONFIG.replace("epochs: 3, watchdog_seconds: 600", changed))
        refuse_other_start(run, **START)
