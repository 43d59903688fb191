"""Pre-training through the command line: what is learned, what is left, how it goes on."""

import json

import numpy as np
import pytest
from support.commands import assert_is_whole, edp_mx, read
from support.pretraining import kill_in_the_middle, pretrain, rows, write_config

from edp_mx.models.checkpoints.huggingface import read_checkpoint

SHORT = ["training.epochs=1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from beginning to end, its configuration, and what it printed."""
    folder = tmp_path_factory.mktemp("pretraining")
    config = write_config(folder)
    result = edp_mx("train", config, "--run", folder / "run")
    assert "Warning" not in result.stderr
    return folder / "run", config, result.stdout


def test_it_learns_to_guess_what_stands_beside(whole):
    """A word from its copies: twelve words as likely, and a number that nobody can know."""
    results = read(whole[0], "results")
    test, baseline = results["test"], results["baseline"]
    assert baseline["perplexity"] > 12 and baseline["masked_accuracy"] < 0.15
    assert test["perplexity"] < baseline["perplexity"] / 3
    assert test["masked_accuracy"] > 0.45  # 0.74 here; by chance 0.08
    assert f"each piece by its frequency: perplexity {baseline['perplexity']:.2f}" in whole[2]
    assert_is_whole(whole[0])


def test_the_model_is_one_that_can_be_started_from(whole, tmp_path):
    run, config, _ = whole
    checkpoint = read_checkpoint(run / "model")
    assert checkpoint.has_masked_lm and checkpoint.has_pooler
    assert len(checkpoint.tokenizer) == len(checkpoint.tensors["cls.predictions.bias"])
    for start in (f"model.checkpoint={run / 'model'}", f"model.start_from={run}"):
        folder = tmp_path / start[:12]
        settings = [
            *SHORT,
            start,
            "data.vocabulary.source=checkpoint",
            "training.learning_rate=1e-9",
        ]
        edp_mx("train", config, "--run", folder, "--set", *settings)
        first = rows(folder)[0]  # goes on where the other had ended, not from chance
        assert first["loss"] < rows(run)[0]["loss"] / 2
        again = read_checkpoint(folder / "model")
        assert again.tokenizer.pieces == checkpoint.tokenizer.pieces
        for name, values in checkpoint.tensors.items():
            np.testing.assert_allclose(again.tensors[name], values, atol=1e-5)
        line = json.loads((folder / "model" / "origin.json").read_text())["origin"]
        assert [each["name"] for each in line] == [folder.name, "run"]


def test_a_killed_run_goes_on_with_the_same_curve(whole, tmp_path):
    run, config, _ = whole
    kill_in_the_middle(tmp_path / "run", config)
    assert "resuming the run" in edp_mx("train", "--resume", tmp_path / "run").stderr
    assert rows(tmp_path / "run") == rows(run)
    one, other = (read_checkpoint(folder / "model").tensors for folder in (run, tmp_path / "run"))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    results = [read(folder, "results") for folder in (run, tmp_path / "run")]
    assert all(result.pop("training_seconds") > 0 for result in results)
    assert results[0] == results[1]


def test_it_fills_masks_and_is_scored_again(whole):
    run = whole[0]
    (found,) = edp_mx(
        "predict", run, "--json", "play play [MASK] play [MASK] play"
    ).stdout.splitlines()
    fillings = json.loads(found)["fillings"]
    assert [max(each, key=each.get) for each in fillings] == ["play", "play"]
    assert "\n  play  (" in edp_mx("predict", run, "play [MASK] play").stdout
    assert json.loads(edp_mx("evaluate", run, "--json").stdout) == read(run, "results")["test"]


def test_its_members_are_attacked_by_the_loss(whole):
    said = edp_mx("attack", whole[0], "--size", "150", "--json").stdout
    assert all(0.3 < each["auc"]["value"] < 0.7 for each in json.loads(said)[0]["results"])


@pytest.mark.parametrize("settings", [
    "privacy.mechanism=edp_sgd privacy.noise_multiplier=1e-4",
    "privacy.mechanism=dp_sgd privacy.clipping=loop privacy.noise_multiplier=0.4 "
    "privacy.max_grad_norm=1",
])  # fmt: skip
def test_a_private_text_is_pre_trained_on_with_privacy(whole, tmp_path, settings):
    """With the pieces of another text, ε is finite, and the model can be started from."""
    run, config, _ = whole
    more = [f"data.vocabulary.path={run / 'model'}", "data.vocabulary.source=file",
            "data.vocabulary.max_words=null", "data.size=400", *SHORT,
            "privacy.assume_public=[lengths,vocabulary]"]  # fmt: skip
    edp_mx("train", config, "--run", tmp_path / "run", "--set", *settings.split(), *more)
    assert read(tmp_path / "run", "privacy")["holds_if"]["epsilon"] > 0
    perplexity = read(tmp_path / "run", "results")["test"]["perplexity"]
    assert np.isfinite(perplexity) and read_checkpoint(tmp_path / "run" / "model").has_masked_lm


@pytest.mark.parametrize("settings, message", [
    ("privacy.mechanism=dp_sgd privacy.clipping=ghost privacy.unit=utterance",
     "shares the vectors of the pieces with the embedding; set it to loop"),
    ("model.family=clc", "task: masked_lm needs a model that reads word pieces"),
])  # fmt: skip
def test_what_it_cannot_do_is_said(whole, tmp_path, settings, message):
    config = whole[1]
    if "clc" in settings:
        config = tmp_path / "clc.yaml"
        text = whole[1].read_text()
        config.write_text(text[: text.index("model:")] + text[text.index("privacy:") :])
    refused = edp_mx("train", config, "--run", tmp_path / "run", "--set", *settings.split(), code=2)
    assert message in refused.stderr and not (tmp_path / "run").exists()


@pytest.mark.slow  # one worker's is in the default suite
@pytest.mark.parametrize("rank", [1, 0])
def test_a_killed_job_goes_on_with_the_same_curve(tmp_path, rank):
    config = write_config(tmp_path)
    pretrain(2, config, "--run", tmp_path / "whole")
    kill_in_the_middle(tmp_path / "run", config, num_workers=2, rank=rank)
    pretrain(2, "--resume", tmp_path / "run")
    assert rows(tmp_path / "run") == rows(tmp_path / "whole")
    tensors = [(folder / "model" / "model.safetensors").read_bytes()
               for folder in (tmp_path / "whole", tmp_path / "run")]  # fmt: skip
    assert tensors[0] == tensors[1]
