"""`edp-mx evaluate --confidence`: what it chooses, what it judges, and what it says of privacy."""

import json

import pytest
from support import cli
from support.drawn_runs import UTTERANCES, drawn_run, predicted
from support.jsonl import write_records

from edp_mx.errors import UserError
from edp_mx.runs.trained_run import TrainedRun


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return drawn_run(tmp_path_factory.mktemp("confidence") / "run", "clc")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Utterances of which every third has a label that no model here knows."""
    path = tmp_path_factory.mktemp("file") / "others.jsonl"
    records = [{"tokens": each.tokens, "slots": each.slots,
                "intent": each.intent if number % 3 else "astronomy"}
               for number, each in enumerate(UTTERANCES)]  # fmt: skip
    return write_records(path, records)


def report(capsys, run, file, *options):
    found = cli.printed(capsys, "evaluate", run.run.path, "--file", file, "--confidence", "--json",
                        *options)  # fmt: skip
    return json.loads(found)["confidence"]


def test_what_is_chosen_is_judged_the_same_when_it_is_set(run, file, capsys):
    chosen = report(capsys, run, file)
    assert (chosen["in_scope"], chosen["out_of_scope"]) == (200, 100)
    temperature, threshold = chosen["scaled"]["temperature"], chosen["threshold"]
    assert temperature != 1 and 0 < threshold < 1
    options = ("--set", f"temperature={temperature}", f"threshold={threshold}")
    judged = report(capsys, run, file, *options)
    assert judged["scaled"]["calibration_error"] == chosen["scaled"]["calibration_error"]
    (at,) = judged["scaled"]["thresholds"]
    assert at in chosen["scaled"]["thresholds"] and at["threshold"] == threshold
    asked = [(each, number) for number, each in enumerate(UTTERANCES)]
    run.set_answering(options[1:])
    answers = predicted(run, [" ".join(each.tokens) for each, _ in asked])
    run.set_answering([])
    refused = [answer["intent"] == "out of scope" for answer in answers]
    assert sum(refused[::3]) / 100 == at["found"]  # `predict` does what the report says
    right = [answer["intent"] == each.intent for answer, (each, n) in zip(answers, asked) if n % 3]
    assert sum(right) / 200 == at["right"]


def test_the_model_reads_each_utterance_once(run, file, capsys, monkeypatch):
    read, encode = [], TrainedRun._encode
    monkeypatch.setattr(
        TrainedRun, "_encode", lambda self, given: read.extend(given) or encode(self, given)
    )
    report(capsys, run, file)
    assert len(read) == len(UTTERANCES)


def test_the_own_label_for_what_is_out_of_scope_is_answered_and_counted(run, capsys, monkeypatch):
    monkeypatch.setattr("edp_mx.runs.trained_run.read_part", lambda *_: UTTERANCES)
    own = run.vocabulary.intents[0]
    settings = ["threshold=0.3", f"out_of_scope={own}"]
    options = ("evaluate", run.run.path, "--confidence", "--json", "--set", *settings)
    judged = json.loads(cli.printed(capsys, *options))["confidence"]
    assert judged["out_of_scope"] == sum(each.intent == own for each in UTTERANCES) > 0
    run.set_answering(settings)
    answers = predicted(run, [" ".join(each.tokens) for each in UTTERANCES])
    run.set_answering([])
    right = sum(answer["intent"] == each.intent for answer, each in zip(answers, UTTERANCES))
    (at,) = judged["scaled"]["thresholds"]
    assert at["accuracy"] == right / len(UTTERANCES) and 0 < at["found"] < 1
    kept = run.run.read("generated")  # for the record of the run
    assert kept == {"accuracy": at["accuracy"], "threshold": 0.3}


def test_the_report_says_that_no_epsilon_covers_what_was_chosen(run, file, capsys):
    options = ("evaluate", run.run.path, "--file", file, "--confidence")
    text = cli.printed(capsys, *options)
    assert "which no ε covers" in text and "least cross entropy: temperature=" in text
    report = text[text.index("confidence ") : text.index("--file.")]
    assert max(map(len, report.splitlines())) <= 80
    text = cli.printed(capsys, *options, "--set", "threshold=0.5")
    assert "which no ε covers" not in text and "| threshold=0.5 " in text


def test_the_training_part_and_tasks_without_labels_are_refused(run, file, tmp_path):
    with pytest.raises(UserError, match="--confidence on the training part says nothing"):
        cli.run("evaluate", run.run.path, "--part", "train", "--confidence")
    with pytest.raises(UserError, match="without --generate or --confidence nothing is set"):
        cli.run("evaluate", run.run.path, "--set", "threshold=0.5")
    guesser = drawn_run(tmp_path / "run", "bert", task="masked_lm")
    with pytest.raises(UserError, match="task: masked_lm has no labels; leave out --confidence"):
        cli.run("evaluate", guesser.run.path, "--file", file, "--confidence")
