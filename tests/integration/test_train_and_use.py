"""The main job through the command line: train, look at the run, evaluate, predict, compare."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
TINY = ["data.size=600", "data.embeddings.dimension=16", "model.hidden_size=16",
        "model.character_filters=4", "training.epochs=3"]  # fmt: skip


def edp_mx(*arguments, check=True, text=None, cwd=None):
    """Runs the real command line."""
    result = subprocess.run(
        [sys.executable, "-m", "edp_mx", *map(str, arguments)], input=text, text=True,
        capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        cwd=cwd, timeout=300)  # fmt: skip
    if check:
        assert result.returncode == 0, result.stderr
    return result


LAYERS = {"sgd": [CONFIGS / "quickstart.yaml"]}
LAYERS["edp_exponential"] = [*LAYERS["sgd"], CONFIGS / "mechanism" / "edp_calibrated.yaml"]


def train(run, mechanism="edp_exponential", settings=()):
    return edp_mx("train", *LAYERS[mechanism], "--run", run,
                  "--set", *TINY, *settings)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two trained runs, SGD and eDP-SGD, and what training them printed."""
    folder = tmp_path_factory.mktemp("runs")
    outputs = {mechanism: train(folder / mechanism, mechanism).stdout
               for mechanism in LAYERS}  # fmt: skip
    return folder, outputs


def test_a_run_directory_is_whole_and_explains_itself(runs):
    run = runs[0] / "edp_exponential"
    readme = (run / "README.md").read_text()
    for path in run.iterdir():
        name = "rank_<i>.log" if path.name.startswith("rank_") else path.name
        assert path.name == "README.md" or name in readme, path.name
    split, config = (json.loads((run / "split.json").read_text()),
                     yaml.safe_load((run / "config.yaml").read_text()))  # fmt: skip
    assert [len(split[part]) for part in ("train", "validation", "test")] == [270, 30, 300]
    assert config["training"]["epochs"] == 3
    assert (run / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_metrics_tell_what_was_trained(runs):
    rows = [json.loads(line) for line in
            (runs[0] / "edp_exponential" / "metrics.jsonl").read_text().splitlines()]  # fmt: skip
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert rows[2]["loss"] < rows[0]["loss"]
    multipliers = [row["noise_multiplier"] for row in rows]
    assert multipliers == pytest.approx([0.004 * np.exp(-0.1 * t) for t in range(3)])
    assert all(0 < row["clipped_fraction"] <= 1 for row in rows)


def test_the_guarantee_is_that_of_the_accountant_alone(runs):
    run = runs[0] / "edp_exponential"
    privacy = json.loads((run / "privacy.json").read_text())
    arguments = ["--noise-multiplier", 0.004, "--decay", "exponential", "--decay-rate", 0.1,
                 "--epochs", 3, "--delta", 1 / 540, "--workers", 1, "--micro-batch-size", 32,
                 "--variant", "calibrated"]  # fmt: skip
    account = json.loads(edp_mx("account", *arguments, "--json").stdout)
    assert privacy["delta"] == pytest.approx(1 / 540)
    for kind in ("as_published", "holds"):
        assert privacy[kind]["epsilon"] == pytest.approx(account[kind]["epsilon"], rel=1e-12)
    assert privacy["kappa"] == 2 and privacy["num_workers"] == 1
    assert privacy["not_covered"]


def test_without_a_mechanism_epsilon_is_infinite_with_its_reason(runs):
    privacy = json.loads((runs[0] / "sgd" / "privacy.json").read_text())
    for kind in ("as_published", "holds", "holds_if"):
        assert privacy[kind]["epsilon"] is None
        assert "no privacy mechanism" in privacy[kind]["reason"]


def test_evaluate_gives_the_scores_of_training(runs):
    run = runs[0] / "sgd"
    scores = json.loads(edp_mx("evaluate", run, "--json").stdout)
    assert scores == json.loads((run / "results.json").read_text())["test"]
    assert "SER" in edp_mx("evaluate", run, "--part", "train").stdout


def test_evaluate_agrees_with_predict_and_score(runs, tmp_path):
    run = runs[0] / "sgd"
    edp_mx("data", "make", "communication", "--size", 50, "--seed", 9, "--out", tmp_path / "new")
    reference = tmp_path / "new" / "utterances.jsonl"
    predicted = edp_mx("predict", run, "-", text=reference.read_text()).stdout
    (tmp_path / "hypothesis.jsonl").write_text(predicted)
    score = json.loads(edp_mx("score", reference, tmp_path / "hypothesis.jsonl", "--json").stdout)
    evaluated = json.loads(edp_mx("evaluate", run, "--file", reference, "--json").stdout)
    assert score == evaluated and score["utterances"] == 50


def test_predict_speaks_to_people_and_to_programs(runs):
    run = runs[0] / "sgd"
    said = edp_mx("predict", run, "call my parents at 0123").stdout
    assert said.startswith("call my parents at 0123\n  intent  ")
    record = json.loads(edp_mx("predict", run, "--json", "call my parents at 0123").stdout)
    assert record["tokens"] == ["call", "my", "parents", "at", "0123"]
    assert len(record["slots"]) == 5 and 0 < record["intent_confidence"] <= 1
    for span in record["spans"]:
        assert span["text"] == " ".join(record["tokens"][span["start"] : span["end"]])
        assert 0 < span["confidence"] <= 1
    stream = edp_mx("predict", run, "-", text='call mum\n\n{"text": "hang up"}\n').stdout
    assert [json.loads(line)["tokens"] for line in stream.splitlines()] == [
        ["call", "mum"], ["hang", "up"]]  # fmt: skip
    given = edp_mx("predict", run, "-", text='{"tokens": ["New York", "x"]}\n').stdout
    assert json.loads(given)["tokens"] == ["New York", "x"]
    for wrong in ('{"tokens": 5}', '{"tokens": []}', '{"tokens": [1]}', '{"other": 1}'):
        refused = edp_mx("predict", run, "-", text=wrong, check=False)
        assert refused.returncode == 2 and "line 1 of standard input is no" in refused.stderr
    torn = edp_mx("predict", run, "-", text="call mum\n{torn\n", check=False)
    assert json.loads(torn.stdout)["tokens"] == ["call", "mum"]
    assert torn.returncode == 2 and "line 2 of standard input" in torn.stderr


def test_predict_answers_a_line_before_the_next_is_typed(runs):
    with subprocess.Popen(
        [sys.executable, "-m", "edp_mx", "predict", str(runs[0] / "sgd"), "-"], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        for text in ("call mum", "hang up"):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["tokens"] == text.split()
        process.stdin.close()
    assert process.returncode == 0


def test_compare_sets_runs_side_by_side(runs):
    table = edp_mx("compare", runs[0] / "sgd", runs[0] / "edp_exponential").stdout.splitlines()
    assert len(table) == 4 and "ε that holds" in table[0] and table[2].startswith("| sgd")
    assert len({len(line) for line in table}) == 1


def test_the_same_seed_trains_the_same_model(runs, tmp_path):
    train(tmp_path / "again", "sgd")
    with np.load(runs[0] / "sgd" / "weights.npz") as one, np.load(
            tmp_path / "again" / "weights.npz") as other:  # fmt: skip
        assert sorted(one.files) == sorted(other.files)
        for name in one.files:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5)


def test_private_runs_differ_even_with_the_same_seed(runs, tmp_path):
    train(tmp_path / "again")
    with np.load(runs[0] / "edp_exponential" / "weights.npz") as one, np.load(
            tmp_path / "again" / "weights.npz") as other:  # fmt: skip
        assert np.abs(one["intent_dense_weight"] - other["intent_dense_weight"]).max() > 1e-3


def test_an_existing_run_is_not_overwritten(runs):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (runs[0] / "sgd").iterdir())
    again = edp_mx("train", *LAYERS["sgd"], "--run", runs[0] / "sgd",
                   check=False)  # fmt: skip
    assert again.returncode == 2 and "is not empty" in again.stderr
    assert before == sorted((p.name, p.stat().st_mtime_ns) for p in (runs[0] / "sgd").iterdir())


def test_unsound_settings_are_refused_before_training(tmp_path):
    for setting, message in (
        ("privacy.delta=0.01", "permits publishing an utterance outright"),
        (
            "training.batch_size=1000",
            "training.batch_size: 1000 does not lie between 1 and the 270",
        ),
        ("data.corpus=absent", "data.corpus: 'absent' is none of"),
    ):
        refused = edp_mx("train", *LAYERS["edp_exponential"], "--run",
                         tmp_path / setting, "--set", "data.size=600", setting,
                         check=False)  # fmt: skip
        assert refused.returncode == 2, refused.stderr
        assert message in refused.stderr and "Traceback" not in refused.stderr
        assert not (tmp_path / setting / "results.json").exists()


@pytest.mark.parametrize("command", ["evaluate", "predict", "compare"])
def test_what_is_no_run_is_said(tmp_path, command):
    extra = ["x"] if command == "predict" else []
    result = edp_mx(command, tmp_path, *extra, check=False)
    assert result.returncode == 2 and "is no run directory" in result.stderr


def test_evaluate_refuses_a_corpus_that_has_changed(tmp_path):
    edp_mx("data", "make", "communication", "--size", 600, "--out", tmp_path / "mine")
    file = tmp_path / "mine" / "utterances.jsonl"
    settings = ["data.corpus=mine", f"data.path={file}", "data.vocabulary.source=train",
                "data.labels.source=train"]  # fmt: skip
    train(tmp_path / "run", settings=settings)
    assert "SER" in edp_mx("evaluate", tmp_path / "run").stdout
    lines = file.read_text().splitlines()
    for changed in (lines[:-50], [line.replace("call", "phone") for line in lines]):
        file.write_text("\n".join(changed) + "\n")
        refused = edp_mx("evaluate", tmp_path / "run", check=False)
        assert refused.returncode == 2 and "Traceback" not in refused.stderr


def test_a_run_that_diverges_says_so(tmp_path):
    refused = edp_mx("train", *LAYERS["sgd"], "--run", tmp_path / "run",
                     "--set", *TINY, "training.learning_rate=1e30", check=False)  # fmt: skip
    assert refused.returncode == 2 and "the training diverged in epoch 1" in refused.stderr


def test_a_torn_weights_file_is_said(runs, tmp_path):
    run = tmp_path / "torn"
    subprocess.run(["cp", "-r", runs[0] / "sgd", run], check=True)
    weights = run / "weights.npz"
    weights.write_bytes(weights.read_bytes()[:1000])
    result = edp_mx("predict", run, "call mum", check=False)
    assert result.returncode == 2 and "weights.npz is torn" in result.stderr
