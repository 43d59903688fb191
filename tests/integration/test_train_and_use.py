"""The main job through the command line: train, look at the run, evaluate, predict, compare."""

import hashlib
import json
import math
import shutil
import sys
import urllib.request
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import yaml
from support.commands import (
    CALIBRATED,
    CONFIGS,
    QUICKSTART,
    assert_is_whole,
    edp_mx,
    finish,
    from_a_shell,
    read,
    rows,
    start,
    weights,
)
from support.gaussian import gaussian_delta
from support.refusals import one_sentence
from support.workers import PATIENCE

from edp_mx import api
from edp_mx.api import predict
from edp_mx.config import load_config
from edp_mx.data import corpus
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.metrics.spans import balanced
from edp_mx.runs.trained_run import load_run
from edp_mx.runtime.files import write_csv
from edp_mx.serving.server import reader_of

TINY = ["data.size=600", "data.embeddings.dimension=16", "model.hidden_size=16",
        "model.character_filters=4", "training.epochs=3"]  # fmt: skip
LAYERS = {"sgd": [QUICKSTART], "edp_exponential": CALIBRATED}


def train(run, mechanism="edp_exponential", settings=(), *options, code=0):
    settings = [*TINY, *settings]
    return edp_mx(
        "train", *LAYERS[mechanism], "--run", run, *options, "--set", *settings, code=code
    )


def test_sixteen_filters_are_clipped_by_ghosts(tmp_path):
    """A small CLC's convolution, whose weight oneDNN reorders (`runtime.arrays.overwrite`)."""
    sixteen = ("model.character_filters=16", "privacy.clipping=ghost", "training.epochs=1")
    train(tmp_path / "run", settings=sixteen)
    assert read(tmp_path / "run", "privacy")["holds_if"]["epsilon"] > 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two trained runs, SGD and eDP-SGD."""
    folder = tmp_path_factory.mktemp("runs")
    for mechanism in LAYERS:
        train(folder / mechanism, mechanism)
    return folder


def test_a_run_directory_is_whole_and_explains_itself(runs):
    run = runs / "edp_exponential"
    assert_is_whole(run)
    split = read(run, "split")
    assert [len(split[part]) for part in ("train", "validation", "test")] == [270, 30, 300]
    assert yaml.safe_load((run / "config.yaml").read_text())["training"]["epochs"] == 3
    assert (run / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_metrics_tell_what_was_trained(runs):
    told = rows(runs / "edp_exponential")
    assert [row["epoch"] for row in told] == [1, 2, 3]
    assert told[2]["loss"] < told[0]["loss"]
    multipliers = [row["noise_multiplier"] for row in told]
    assert multipliers == pytest.approx([0.004 * np.exp(-0.1 * t) for t in range(3)])
    assert all(0 < row["clipped_fraction"] <= 1 for row in told)


def test_the_guarantee_is_that_of_the_accountant_alone(runs):
    run = runs / "edp_exponential"
    privacy = read(run, "privacy")
    arguments = ["--noise-multiplier", 0.004, "--epochs", 3, "--delta", 1 / 540,
                 "--set", "privacy.decay={kind: exponential, rate: 0.1}"]  # fmt: skip
    account = json.loads(edp_mx("account", *arguments, "--json").stdout)
    assert privacy["delta"] == pytest.approx(1 / 540)
    for kind in ("as_published", "holds"):
        assert privacy[kind]["epsilon"] == pytest.approx(account[kind]["epsilon"], rel=1e-12)
    assert privacy["kappa"] == 2 and privacy["num_workers"] == 1
    assert privacy["not_covered"]


def test_check_foretells_what_a_run_will_be(runs, tmp_path):
    said = train(tmp_path / "run", "edp_exponential", (), "--check").stdout
    assert not (tmp_path / "run").exists()
    told = [line for line in said.splitlines() if "epsilon" in line or " training, " in line]
    log = (runs / "edp_exponential" / "rank_0.log").read_text()
    assert len(told) == 3 and all(line in log for line in told)


def test_evaluate_gives_the_scores_of_training(runs):
    run = runs / "sgd"
    scores = json.loads(edp_mx("evaluate", run, "--json").stdout)
    results = read(run, "results")
    assert scores == results["test"]
    intent = results["baseline"]["intent"]
    assert f'always "{intent}" and no slots: SER' in edp_mx("evaluate", run).stdout
    assert "SER" in edp_mx("evaluate", run, "--part", "train").stdout


def test_a_text_is_cut_by_the_tokenizer_of_the_run(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs / "sgd", run)
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("tokenizer: auto", "tokenizer: punctuation"))
    said = json.loads(edp_mx("predict", run, "--json", "call mum?").stdout)
    assert said["tokens"] == ["call", "mum", "?"]
    said = json.loads(edp_mx("predict", run, "-", text="call mum?\n").stdout)
    assert said["tokens"] == ["call", "mum", "?"]
    (said,) = predict(run, ["call mum?"])
    assert predict(run, "call mum?")[0].to_dict() == said.to_dict()
    assert said.utterance.tokens == ("call", "mum", "?")
    assert reader_of(run)[0]("call mum?") == ["call", "mum", "?"]  # the server's
    assert reader_of(runs / "sgd")[0]("call mum?") == ["call", "mum?"]


def test_evaluate_says_that_a_corpus_is_of_another_kind(runs, tmp_path):
    edp_mx("data", "make", "video", "--size", 50, "--out", tmp_path / "video")
    found = edp_mx("evaluate", runs / "sgd", "--file", tmp_path / "video")
    assert found.stderr.startswith(
        "50 of 50 utterances have an intent that the model does not know"
    )
    assert "Intent accuracy 0.00 % is below always answering" in found.stdout
    assert "the model is of no use here." in " ".join(found.stdout.split())


def test_evaluate_agrees_with_predict_and_score(runs, tmp_path):
    run = runs / "sgd"
    edp_mx("data", "make", "communication", "--size", 50, "--seed", 9, "--out", tmp_path / "new")
    reference = tmp_path / "new" / "utterances.jsonl"
    predicted = edp_mx("predict", run, "-", text=reference.read_text()).stdout
    (tmp_path / "hypothesis.jsonl").write_text(predicted)
    score = json.loads(edp_mx("score", reference, tmp_path / "hypothesis.jsonl", "--json").stdout)
    evaluated = json.loads(edp_mx("evaluate", run, "--file", reference, "--json").stdout)
    assert score == evaluated and score["utterances"] == 50
    table = tmp_path / "new.csv"
    said = [json.loads(line) for line in reference.read_text().splitlines()]
    rows = [
        [each["intent"], *(" ".join(each[key]) for key in ("tokens", "slots"))] for each in said
    ]
    write_csv(table, ("intent", "said", "bio"), rows)
    columns = ("--columns", "text=said", "slots=bio")
    again = json.loads(edp_mx("evaluate", run, "--file", table, "--json", *columns).stdout)
    assert again == score
    refused = edp_mx("evaluate", run, *columns, code=2).stderr
    assert "leave out --columns" in refused


def test_predict_speaks_to_people_and_to_programs(runs):
    run = runs / "sgd"
    said = edp_mx("predict", run, "call my parents at 0123").stdout
    assert said.startswith("call my parents at 0123\n  intent  ")
    record = json.loads(edp_mx("predict", run, "--json", "call my parents at 0123").stdout)
    assert record["tokens"] == ["call", "my", "parents", "at", "0123"]
    assert len(record["slots"]) == 5 and 0 < record["intent_confidence"] <= 1
    for span in record["spans"]:
        assert span["text"] == " ".join(record["tokens"][span["start"] : span["end"]])
        assert 0 < span["confidence"] <= 1
    lines = edp_mx("predict", run, "-", "--format", "text", text="call mum\n\n").stdout
    assert len(lines.splitlines()) == 2 and lines.endswith("error: line 2: empty\n")


def test_what_is_predicted_opens_each_slot_with_b(runs):
    trained = load_run(runs / "sgd")
    inside = tuple(f"I-{tag[2:]}" if tag != "O" else "I-x" for tag in trained.vocabulary.slots)
    strange = replace(trained, vocabulary=replace(trained.vocabulary, slots=inside))
    for found in strange.predict([["call", "my", "mother", "now"], ["hang", "up"]]):
        tags = found.utterance.slots
        assert tags[0][0] == "B" and balanced(tags) == tags
        assert len(found.slot_confidences) == len(found.spans())


def test_predict_answers_a_line_before_the_next_is_typed(runs):
    process = start("predict", runs / "sgd", "-")
    for text in ("call mum", "hang up"):
        process.stdin.write(f"{text}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["tokens"] == text.split()
    finish(process)


def test_compare_sets_runs_side_by_side(runs):
    text = edp_mx("compare", runs / "sgd", runs / "edp_exponential").stdout
    table = text.splitlines()[:4]
    assert (
        text.count("and no slots: SER") == 1
        and "ε that holds" in table[0]
        and table[2].startswith("| sgd")
    )
    assert len({len(line) for line in table}) == 1


def test_the_same_seed_trains_the_same_model_without_importing_an_attack(runs, tmp_path):
    """In another process too."""
    command = (sys.executable, "-X", "importtime", "-m", "edp_mx", "train")
    imports = from_a_shell(*command, QUICKSTART, "--run", tmp_path / "again", "--set", *TINY).stderr
    assert "edp_mx.reports.run_page" in imports and "edp_mx.attacks" not in imports
    one, other = weights(runs / "sgd"), weights(tmp_path / "again")
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5)


def test_a_corpus_that_is_mapped_from_files_trains_the_same_model(runs, tmp_path, monkeypatch):
    held, run = runs / "sgd", tmp_path / "opened"
    monkeypatch.setattr(corpus, "KEPT_FROM", 100)
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path / "cache"))
    corpus.load_corpus(load_config(QUICKSTART, TINY).data)  # written; what follows opens it
    train(run, "sgd")
    assert len(list((tmp_path / "cache" / "corpora").glob("*.arrow"))) == 1
    for name in ("split.json", "vocabulary.json", "layers.json"):
        assert (run / name).read_bytes() == (held / name).read_bytes()
    prints = [read(one, "environment")["fingerprints"] for one in (held, run)]
    assert prints[0] == prints[1]
    scores, expected = (read(one, "results")["test"] for one in (run, held))
    assert scores == pytest.approx(expected, rel=1e-3)
    for name, value in weights(run).items():
        np.testing.assert_allclose(weights(held)[name], value, rtol=1e-4, atol=1e-5)
    again = json.loads(edp_mx("evaluate", run, "--json").stdout)
    assert again["ser"] == pytest.approx(expected["ser"], rel=1e-3)


def test_private_runs_differ_even_with_the_same_seed(runs, tmp_path):
    said = json.loads(train(tmp_path / "again", "edp_exponential", (), "--json").stdout)
    assert said["privacy"] == read(tmp_path / "again", "privacy")
    assert said["test"] == read(tmp_path / "again", "results")["test"]
    one, other = weights(runs / "edp_exponential"), weights(tmp_path / "again")
    assert np.abs(one["intent_dense_weight"] - other["intent_dense_weight"]).max() > 1e-3


def test_an_existing_run_is_not_overwritten(runs):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (runs / "sgd").iterdir())
    assert "is not empty" in train(runs / "sgd", "sgd", code=2).stderr
    assert before == sorted((p.name, p.stat().st_mtime_ns) for p in (runs / "sgd").iterdir())


@pytest.mark.parametrize(
    "setting, message",
    [
        ("privacy.delta=0.01", "permits publishing an utterance outright"),
        (
            "training.batch_size=1000",
            "training.batch_size: 1000 does not lie between 1 and the 270",
        ),
        ("data.corpus=absent", "video, not 'absent', unless data.path is set"),
    ],
)
def test_unsound_settings_are_refused_in_one_sentence(tmp_path, setting, message):
    mechanism = "edp_exponential" if "delta" in setting else "sgd"
    assert message in train(tmp_path / "run", mechanism, [setting], code=2).stderr
    assert not (tmp_path / "run" / "results.json").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # without pytest nobody sees them
@pytest.mark.parametrize("is_private", [False, True])
def test_a_training_that_diverges_says_so(tmp_path, is_private):
    """That it was ended tells of the data, so that all three epochs count: ε is the target's."""
    settings, files = [*TINY, "training.learning_rate=1e30"], [QUICKSTART]
    if is_private:
        files.append(CONFIGS / "mechanism" / "dp_sgd.yaml")
        settings += ["training.optimizer=sgd", "privacy.max_grad_norm=1e30",
                     "training.batch_size=32", "privacy.target_epsilon=3"]  # fmt: skip
    result = edp_mx("train", *files, "--run", tmp_path / "run", "--set", *settings, code=2)
    assert "Traceback" not in result.stderr
    assert "the training diverged in epoch 1" in result.stderr
    assert not (tmp_path / "run" / "results.json").exists()
    if is_private:
        assert "ε counts all that was planned" in result.stderr
        assert api.account(tmp_path / "run").holds.epsilon.value == pytest.approx(3, rel=1e-5)
        ledger = tmp_path / "run" / "privacy_ledger.jsonl"
        lines = ledger.read_text().splitlines(keepends=True)
        ledger.write_text("".join(lines[:-1]))  # without the line that says why all counts
        one_sentence("lines are missing at its end", api.account, tmp_path / "run")


@pytest.mark.parametrize("command", ["evaluate", "predict", "compare", "watch"])
def test_what_is_no_run_is_said(tmp_path, command):
    extra = ["x"] if command == "predict" else []
    assert "is not a run directory" in edp_mx(command, tmp_path, *extra, code=2).stderr


def test_evaluate_refuses_a_corpus_that_has_changed(tmp_path):
    edp_mx("data", "make", "communication", "--size", 600, "--out", tmp_path / "mine")
    file = tmp_path / "mine" / "utterances.jsonl"
    settings = ["data.corpus=mine", f"data.path={file}", "data.vocabulary.source=train",
                "data.labels.source=train"]  # fmt: skip
    train(tmp_path / "run", settings=[*settings, "data.size=null", "training.epochs=1"])
    assert "SER" in edp_mx("evaluate", tmp_path / "run").stdout
    lines = file.read_text().splitlines()
    for changed, said in (
        (lines[:-50], "the split names the utterance"),
        ([line.replace("call", "phone") for line in lines], "has changed since the run"),
    ):
        file.write_text("\n".join(changed) + "\n")
        assert said in edp_mx("evaluate", tmp_path / "run", code=2).stderr


def test_a_served_model_answers_as_predict_does(runs):
    run, text = runs / "sgd", "call my parents at 0123"
    expected = json.loads(edp_mx("predict", run, "--json", text).stdout)
    process = start("serve", run, "--port", 0)
    address = process.stdout.readline().split()[0]
    request = urllib.request.Request(
        f"{address}predict",
        json.dumps({"text": text}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        found = json.loads(answer.read())
    process.terminate()
    finish(process)
    assert found["intent_confidence"] == pytest.approx(expected["intent_confidence"], abs=0.00501)
    assert found["intent_confidence"] == round(found["intent_confidence"], 2)
    assert {key: found[key] for key in ("tokens", "slots", "intent")} == {
        key: expected[key] for key in ("tokens", "slots", "intent")
    }


def test_the_statement_says_what_holds_and_for_whom(runs):
    run = runs / "edp_exponential"
    assert edp_mx("statement", run).stdout.split() == [
        str(run / f"statement.{ending}") for ending in ("html", "md")
    ]
    text, privacy = (run / "statement.md").read_text(), read(run, "privacy")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "]
    figures = {cells[0].strip(): cells[1].strip() for cells in lines if len(cells) == 2}
    epsilon = LogNumber(math.log(10) * privacy["holds"]["log10_epsilon"])
    assert figures["ε that holds"] == epsilon.in_words()
    assert figures["unit of privacy"] == "one utterance of 270 in the training part"
    end = json.loads((run / "privacy_ledger.jsonl").read_text().splitlines()[-1])
    (weights,) = run.glob("weights*")
    assert hashlib.sha256(weights.read_bytes()).hexdigest() in figures["weights"]
    assert figures["ledger"] == f"{end['line']} lines, the last with the SHA-256 {end['sha256']}"
    key = read(run, "environment")["fingerprints"]["train"]
    assert figures["fingerprint of the training part"] == "{digest} of the key {key}".format(**key)
    ids = set(read(run, "split")["train"])
    utterances = corpus.load_corpus(load_config(run / "config.yaml").data).utterances
    counts = Counter(" ".join(one.tokens).lower() for one in utterances if one.id in ids)
    copies, most = sum(n for n in counts.values() if n > 1), max(counts.values())
    assert figures["repeats in the training part"].startswith(f"{copies} utterances have the words")
    assert f"has {most} copies" in text
    assert all(f"- {said}" in text for said in privacy["not_covered"])
    assert edp_mx("statement", runs / "sgd", code=2).stderr.count("epsilon is infinite") == 1


def test_the_budget_of_a_corpus_is_that_of_all_runs_on_it(runs, tmp_path_factory):
    """Two runs on one training part, and a third on another that shares some of its texts."""
    folder = tmp_path_factory.mktemp("budget")
    shutil.copytree(runs / "edp_exponential", folder / "first")
    train(folder / "second", settings=["training.epochs=2"])
    train(folder / "third", settings=["data.split_seed=5", "training.epochs=1"])
    shown = edp_mx("budget", folder, "--json", "--delta", 1e-4)
    found = json.loads(shown.stdout)
    rho = {}
    for each in found["runs"]:
        rho[each["run"]] = 10 ** each["holds"]["log10_rho"]
    names = {name: str(folder / name) for name in ("first", "second", "third")}
    parts = {name: texts_of(folder / name) for name in names}
    assert parts["first"] == parts["second"] != parts["third"]
    holders = {"first", "second", "third"} if parts["first"] & parts["third"] else None
    assert holders, "the parts share a text"
    (worst,) = found["together"]  # any other record is in fewer of these runs
    assert worst["records"] == len(parts["first"] & parts["third"])
    assert 10 ** worst["log10_rho"] == pytest.approx(sum(rho.values()), rel=1e-9)
    # By hand: the Gaussian mechanism with mu = sqrt(2 rho) at delta.
    epsilon, mu = 10 ** worst["log10_epsilon"], math.sqrt(2 * sum(rho.values()))
    assert gaussian_delta(epsilon, mu) == pytest.approx(1e-4, rel=1e-5)
    assert "runs (" in edp_mx("budget", folder).stdout


def test_each_epsilon_of_a_budget_has_its_condition(runs, tmp_path):
    """The words of the smaller are those of its training part."""
    shutil.copytree(runs / "edp_exponential", tmp_path / "first")
    own_words = ["data.vocabulary.source=train", "data.labels.source=train", "training.epochs=1"]
    train(tmp_path / "second", settings=["data.corpus=health", *own_words])
    said = edp_mx("budget", tmp_path).stdout.partition("Together")[2].splitlines()
    (place,) = (i for i, line in enumerate(said) if line.endswith("second)"))
    assert said[place + 1].strip().startswith("if the vocabulary")


def test_a_run_that_exceeds_the_budget_of_its_corpus_is_refused(runs):
    run = runs / "too_much"
    spent = read(runs / "edp_exponential", "privacy")["holds"]["epsilon"]
    refused = train(run, "edp_exponential", [f"privacy.corpus_budget={1.2 * spent}"], code=2)
    said = " ".join(refused.stderr.split())
    assert "privacy.corpus_budget: this run and those before it" in said
    assert str(runs / "edp_exponential") in said
    assert not run.exists()
    train(run, "edp_exponential", [f"privacy.corpus_budget={3 * spent}"])


def texts_of(run):
    """The texts of its training part, in lower case."""
    ids = set(read(run, "split")["train"])
    utterances = corpus.load_corpus(load_config(run / "config.yaml").data).utterances
    return {" ".join(one.tokens).lower() for one in utterances if one.id in ids}


def test_a_task_that_writes_no_text_says_so(runs):
    said = edp_mx("evaluate", runs / "sgd", "--generate", 2, code=2).stderr
    assert "task: intent_slot writes no text; leave out --generate" in said


def test_scores_of_each_label_add_up(runs):
    found = json.loads(edp_mx("evaluate", runs / "sgd", "--by-label", "--json").stdout)
    right, there = (sum(of[key] for of in found["labels"]) for key in ("right", "wanted"))
    assert there == found["utterances"] and right / there == found["intent_accuracy"]
    slots = sum(of["wanted"] for of in found["slots"])
    assert slots + there == found["correct"] + found["substitutions"] + found["deletions"]
    shown = edp_mx("evaluate", runs / "sgd", "--by-label").stdout
    assert "| intent" in shown and "| slot" in shown and "found instead" in shown
