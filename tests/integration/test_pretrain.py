"""Pre-training through the command line: what is learned, what is left, how it goes on."""

import shutil

import numpy as np
import pytest
import yaml
from support.commands import assert_is_whole, edp_mx, read
from support.pretraining import kill_in_the_middle, pretrain, rows, write_config

from edp_mx.models.checkpoints.huggingface import read_checkpoint

SHORT = ["pretraining.epochs=1", "text.held_out_fraction=0.5"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from beginning to end, its configuration, and what it printed."""
    folder = tmp_path_factory.mktemp("pretraining")
    config = write_config(folder)
    result = pretrain(1, config, "--run", folder / "run")
    assert "Warning" not in result.stderr
    return folder / "run", config, result.stdout


def test_it_learns_to_guess_what_stands_beside(whole):
    """A word from its five copies: twelve words as likely, and a number that nobody can know."""
    results = read(whole[0], "results")
    assert results["unigram_perplexity"] > 12
    assert results["perplexity"] < results["unigram_perplexity"] / 3
    assert results["masked_accuracy"] > 45  # 74 to 80 on five kinds of processor; by chance 8
    assert f"perplexity {results['perplexity']:.2f}" in whole[2]


def test_the_run_directory_is_whole_and_explains_itself(whole):
    run = whole[0]
    assert_is_whole(run)
    assert not (run / "checkpoint.npz").exists()  # it has ended
    assert (run / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert len((run / "curves.csv").read_text().splitlines()) == len(rows(run)) + 1
    assert list((run / "events").iterdir())


def test_the_log_tells_every_step_once(whole):
    run = whole[0]
    results = read(run, "results")
    steps = [row["step"] for row in rows(run)]
    per_epoch = results["steps"] // 2
    expected = {*range(5, results["steps"] + 1, 5), per_epoch, results["steps"]}
    assert steps == sorted(expected)
    scored = [row["step"] for row in rows(run) if "perplexity" in row]
    assert scored == sorted({*range(20, results["steps"] + 1, 20), results["steps"]})
    rates = [row["learning_rate"] for row in rows(run)]
    assert max(rates) == pytest.approx(0.003, rel=0.05) and rates[-1] < 1e-4


def test_the_model_is_one_that_can_be_started_from(whole, tmp_path):
    run, config, _ = whole
    checkpoint = read_checkpoint(run / "model")
    assert checkpoint.has_masked_lm and checkpoint.has_pooler
    assert len(checkpoint.tokenizer) == len(checkpoint.tensors["cls.predictions.bias"])
    settings = [*SHORT, f"model.checkpoint={run / 'model'}", "pretraining.learning_rate=1e-9"]
    edp_mx("pretrain", config, "--run", tmp_path / "more", "--set", *settings)
    first = rows(tmp_path / "more")[0]  # goes on where the other had ended, not from chance
    assert first["loss"] < rows(run)[0]["loss"] / 2
    again = read_checkpoint(tmp_path / "more" / "model")
    assert again.tokenizer.pieces == checkpoint.tokenizer.pieces
    for name, values in checkpoint.tensors.items():
        np.testing.assert_allclose(again.tensors[name], values, atol=1e-5)


def test_a_killed_run_goes_on_with_the_same_curve(whole, tmp_path):
    run, config, _ = whole
    kill_in_the_middle(tmp_path / "run", config)
    errors = edp_mx("pretrain", "--resume", tmp_path / "run").stderr
    assert "resuming after step" in errors and "resuming after step 0" not in errors
    assert rows(tmp_path / "run") == rows(run)
    one, other = (read_checkpoint(folder / "model").tensors for folder in (run, tmp_path / "run"))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    results = [read(folder, "results") for folder in (run, tmp_path / "run")]
    assert all(result.pop("seconds") > 0 for result in results)
    assert results[0] == results[1]


def test_what_cannot_go_on_is_said(whole, tmp_path):
    run, config, _ = whole
    for arguments, message in (
        (["--resume", run], "has ended already"),
        (["--resume", tmp_path], "is not a run directory"),
        ([config, "--resume", run], "name either a configuration or"),
        ([], "name either a configuration or"),
        (["--resume", run, "--set", "name=x"], "leave out --set and --run"),
        ([config, "--run", run], "is not empty"),
    ):
        assert message in edp_mx("pretrain", *arguments, code=2).stderr


def test_a_text_that_has_changed_ends_the_resumption(tmp_path):
    config = write_config(tmp_path)
    kill_in_the_middle(tmp_path / "run", config, after=4)
    with open(tmp_path / "text.txt", "a") as file:
        file.write("".join(f"one more line {i}\n" for i in range(20)))
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    refused = edp_mx("pretrain", "--resume", tmp_path / "run", code=2)
    assert "the lines have changed since" in refused.stderr
    assert rows(tmp_path / "run") == rows(tmp_path / "before")


def test_a_run_that_diverges_says_so(tmp_path):
    config = write_config(tmp_path)
    settings = [*SHORT, "pretraining.learning_rate=1e30"]
    result = pretrain(1, config, "--run", tmp_path / "run", "--set", *settings, code=2)
    assert "the pre-training diverged before step" in result.stderr
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["name"] == "copies"
