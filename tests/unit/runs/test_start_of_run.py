"""What a resumed run is held to."""

import json
from hashlib import sha256

import pytest

from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.start_of_run import refuse_other_start, write_start

PRINTS = {"train": "t", "validation": "v", "test": "s"}
CONFIG = "name: mine\ntraining: {epochs: 3, watchdog_seconds: 600}\n"
START = {"fingerprints": PRINTS, "vocabulary": {"words": ["call", "mum"], "is_public": True}}


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
    ],
)
def test_another_start_is_refused_by_its_name(run, change, words):
    with pytest.raises(UserError, match=words) as caught:
        refuse_other_start(run, **{**START, **change})
    assert "put back what the run was begun with" in str(caught.value)


def test_a_changed_setting_and_a_lost_vocabulary_are_noticed(run):
    run.config.write_text(CONFIG.replace("epochs: 3", "epochs: 4"))
    with pytest.raises(UserError, match=r"config.yaml was changed since it was begun"):
        refuse_other_start(run, **START)
    run.config.write_text(CONFIG)
    (run.path / "vocabulary.json").unlink()
    with pytest.raises(UserError, match=r"vocabulary.json is missing"):
        refuse_other_start(run, **START)


def test_what_the_start_did_not_write_down_is_not_asked_for(run, monkeypatch, tmp_path):
    begun = run.read("environment")
    del begun["settings"]  # begun by an older version
    run.write("environment", begun)
    run.config.write_text(CONFIG.replace("epochs: 3", "epochs: 4"))
    refuse_other_start(run, **START)
    monkeypatch.setenv("EDP_MX_KEY", str(tmp_path / "other.key"))
    refuse_other_start(run, **{**START, "fingerprints": dict.fromkeys(PRINTS, "x")})


def test_a_key_that_changes_nothing_may_change_and_one_that_was_added_later_too(run):
    """As an older version began it: a hash of the whole text, which lacks the keys of today."""
    for changed in ("epochs: 3, watchdog_seconds: 60", "epochs: 3"):
        run.config.write_text(CONFIG.replace("epochs: 3, watchdog_seconds: 600", changed))
        refuse_other_start(run, **START)
    run.config.write_text(CONFIG)
    older = sha256(repr(CONFIG).encode()).hexdigest()[:16]
    assert older != run.read("environment")["settings"]
    run.write("environment", {**run.read("environment"), "settings": older})
    refuse_other_start(run, **START)
