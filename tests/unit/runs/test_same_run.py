"""What a resumed run is held to."""

import pytest

from edp_mx.data.fingerprint import keyed
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.same_run import refuse_other_start

START = {
    "settings": "a1",
    "fingerprints": {"train": "t", "validation": "v", "test": "s"},
    "vocabulary": {"words": ["call", "mum"], "is_public": True},
}


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path)
    prints = {part: keyed(value) for part, value in START["fingerprints"].items()}
    run.write("environment", {"settings": "a1", "fingerprints": prints})
    run.write("vocabulary", START["vocabulary"])
    return run


def test_the_same_start_is_taken(run):
    refuse_other_start(run, **START)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"settings": "b2"}, "config.yaml was changed"),
        ({"fingerprints": {**START["fingerprints"], "train": "x"}}, "the train part"),
        ({"fingerprints": {**START["fingerprints"], "test": "x"}}, "the test part"),
        ({"vocabulary": {"words": ["call"], "is_public": True}}, "not the vocabulary of now"),
    ],
)
def test_another_start_is_refused_by_its_name(run, change, words):
    with pytest.raises(UserError, match=words) as caught:
        refuse_other_start(run, **{**START, **change})
    assert "put back what the run was begun with" in str(caught.value)


def test_a_vocabulary_that_is_gone_is_missed(run):
    (run.path / "vocabulary.json").unlink()
    with pytest.raises(UserError, match=r"vocabulary.json is missing"):
        refuse_other_start(run, **START)


def test_what_the_start_did_not_write_down_is_not_asked_for(run, monkeypatch, tmp_path):
    run.write("environment", {"fingerprints": run.read("environment")["fingerprints"]})
    refuse_other_start(run, **{**START, "settings": "b2"})  # begun by an older version
    monkeypatch.setenv("EDP_MX_KEY", str(tmp_path / "other.key"))
    refuse_other_start(run, **{**START, "fingerprints": dict.fromkeys(START["fingerprints"], "x")})
