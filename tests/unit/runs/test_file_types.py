"""Files of a run that are JSON, but not what a run writes."""

import json

import pytest
from support.records import PRIVACY
from support.refusals import one_sentence

from edp_mx.runs.run_directory import RunDirectory


@pytest.mark.parametrize(
    "name, content, told",
    [
        ("results", "[]", "[] is not a mapping of keys (test, "),
        ("results", '{"test": {"ser": "x"}}', "test.ser: 'x' is not a number"),
        ("results", '{"test": {"ser": 1e308}}', "test.ser: 1e+308 is more than 1e+300"),
        ("results", "{}", "test is missing"),
        ("split", '{"train": [1]}', "train: 1 is not a text"),
        ("environment", '{"num_workers": 0}', "num_workers is 0, not from 1 to 1e+09"),
        (
            "privacy",
            json.dumps({**PRIVACY, "delta": 0.1, "as_published": {"epsilon": True}}),
            "as_published.epsilon: True is not a number",
        ),
        ("vocabulary", '{"words": "a"}', "words: 'a' is not a list"),
    ],
)
def test_another_shape_is_refused_by_file_and_key(name, content, told, tmp_path):
    (tmp_path / f"{name}.json").write_text(content)
    said = one_sentence(r"\.json: ", RunDirectory(tmp_path).read, name)
    assert said.startswith(f"{tmp_path / name}.json: {told}")


ROW = {"epoch": 1, "loss": 1.0, "seconds": 2.0, "ser": 0.5, "intent_accuracy": 0.5, "slot_f1": 0.5}


@pytest.mark.parametrize("key", ["epoch", "intent_accuracy"])
def test_an_epoch_has_no_null_for_what_is_calculated_with(tmp_path, key):
    run = RunDirectory(tmp_path)
    run.config.write_text("name: run\n")
    run.metrics.write_text(json.dumps({**ROW, key: None}) + "\n{}\n")
    one_sentence(rf"metrics\.jsonl, line 1 has no {key};", run.epochs)


def test_a_loss_may_be_beyond_all_numbers(tmp_path):
    run = RunDirectory(tmp_path)
    run.metrics.write_text(json.dumps({**ROW, "loss": None}) + "\n")
    assert run.epochs() == [{**ROW, "loss": None}]


SCORES = {"ser": 0.5, "intent_accuracy": 0.5, "slot_f1": 0.5}


@pytest.mark.parametrize(
    "test, baseline, told",
    [
        ({"ser": 0.5}, {"intent": "call", **SCORES}, "test lacks its intent_accuracy"),
        (SCORES, {"intent": "call", **SCORES, "ser": "low"}, "baseline lacks its ser"),
        (SCORES, {"intent": "call", **SCORES, "slot_f1": {}}, "baseline lacks its slot_f1"),
        (SCORES, SCORES, "baseline lacks its intent"),
    ],
)
def test_results_have_the_scores_of_the_task(test, baseline, told, tmp_path):
    run = RunDirectory(tmp_path)
    run.config.write_text("name: run\n")
    run.write("results", {"test": test, "baseline": baseline})
    one_sentence(rf"results\.json: {told}; it was cut or changed", run.scores)


def test_an_epoch_is_of_numbers(tmp_path):
    run = RunDirectory(tmp_path)
    first = json.dumps(ROW) + "\n"
    run.metrics.write_text(first + json.dumps({**ROW, "ser": "low"}) + "\n")
    one_sentence(r"metrics\.jsonl, line 2: ser: 'low' is not a number", run.epochs)
    run.metrics.write_text(first + '{"epoch": 2, "se')
    assert run.epochs() == [ROW]  # torn by a crash


def test_a_wrong_value_of_nested_mappings_is_named_with_all_its_keys(tmp_path):
    run = RunDirectory(tmp_path)
    (tmp_path / "environment.json").write_text('{"fingerprints": {"train": {"key": 5}}}')
    one_sentence(r"json: fingerprints\.train\.key: 5 is not a text", run.read, "environment")
