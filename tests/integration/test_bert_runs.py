"""A BERT through the command line: pieces from here and there, a checkpoint, frozen parts."""

import json
import shutil

import numpy as np
import pytest
from support.commands import CONFIGS, edp_mx, from_a_shell, interrupted, read, rows, weights

TINY = [
    "data.size=600", "model.num_layers=2", "model.num_heads=2", "model.hidden_size=32",
    "model.intermediate_size=48", "training.epochs=4", "training.batch_size=32",
    "training.learning_rate=2e-3",
]  # fmt: skip
CONFIG = """
include: [{configs}/data/standin.yaml, {configs}/model/bert.yaml, {configs}/mechanism/{mechanism}.yaml]
name: tiny_bert
data: {{corpus: communication}}
training: {{schedule: {{kind: linear, warmup_fraction: 0.1}}}}
"""  # noqa: E501


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Configurations, and one trained run `sgd`."""
    folder = tmp_path_factory.mktemp("bert")
    for mechanism in ("sgd", "edp_exponential", "dp_sgd"):
        text = CONFIG.format(configs=CONFIGS, mechanism=mechanism)
        (folder / f"{mechanism}.yaml").write_text(text)
    edp_mx("train", folder / "sgd.yaml", "--run", folder / "sgd", "--set", *TINY)
    return folder


def test_a_run_learns_and_its_model_is_known_again(folder):
    run = folder / "sgd"
    assert rows(run)[-1]["loss"] < 0.7 * rows(run)[0]["loss"]
    vocabulary, scores = read(run, "vocabulary"), read(run, "results")["test"]
    assert vocabulary["word_source"] == "sample" and len(vocabulary["pieces"]) > 100
    assert scores["ser"] < 1 and json.loads(edp_mx("evaluate", run, "--json").stdout) == scores


def test_an_utterance_that_is_too_long_is_cut_counted_and_still_understood(folder):
    long = " ".join(["call", "my", "parents"] * 80)
    result = from_a_shell("predict", folder / "sgd", "--json", long)
    assert "1 of 1 given utterances are longer than" in result.stderr
    assert len(json.loads(result.stdout)["slots"]) == 240


def test_edp_sgd_from_a_checkpoint_with_frozen_layers(folder):
    """Export, start from it, and see that what is frozen has not moved."""
    edp_mx("export", folder / "sgd", "--to", "huggingface", "--out", folder / "checkpoint")
    settings = [*TINY, f"model.checkpoint={folder / 'checkpoint'}",
                "data.vocabulary.source=checkpoint", "model.is_embedding_trainable=false",
                "model.frozen_layers=1", "training.epochs=1",
                "training.learning_rates.heads=5e-3"]  # fmt: skip
    edp_mx("train", folder / "edp_exponential.yaml", "--run", folder / "edp", "--set", *settings)
    start, end = weights(folder / "sgd"), weights(folder / "edp")
    still = {name for name in end if start[name].shape == end[name].shape
             and (start[name] == end[name]).all()}  # fmt: skip
    frozen = {n for n in end if "transformer0" in n or "embed" in n or "position_weight" in n
              or n.startswith("bert_encoder_layernorm")}  # fmt: skip
    assert still == frozen
    layers = read(folder / "edp", "layers")
    assert not frozen & {name for layer in layers for name in layer["parameters"]}
    printed = edp_mx("predict", folder / "edp", "call my parents at 0123").stdout
    assert "intent" in printed


def test_adapters_are_trained_with_ghost_clipping_and_known_again(folder):
    settings = [*TINY, f"model.start_from={folder / 'sgd'}", "training.epochs=1",
                "data.vocabulary.source=checkpoint", "model.trained=lora", "model.lora_rank=2",
                "model.frozen_layers=1", "privacy.assume_public=[start]"]  # fmt: skip
    edp_mx("train", folder / "dp_sgd.yaml", "--run", folder / "lora", "--set", *settings)
    start, end = weights(folder / "sgd"), weights(folder / "lora")
    moved = {name for name in start if (start[name] != end[name]).any()}
    assert moved and all(name.startswith(("intent_", "slot_")) for name in moved)
    adapters = set(end) - set(start)
    assert len(adapters) == 2 * (6 + 1) and all(end[name].any() for name in adapters)
    scores = read(folder / "lora", "results")["test"]
    assert json.loads(edp_mx("evaluate", folder / "lora", "--json").stdout) == scores


@pytest.mark.slow
def test_heads_that_start_from_a_run_are_attacked_like_others(folder):
    """The shadows and the canaries start from it too, and read its stored outputs."""
    run = folder / "heads"
    settings = [*TINY, f"model.start_from={folder / 'sgd'}", "model.heads=names",
                "data.vocabulary.source=checkpoint", "model.trained=heads",
                "model.features=all_layers", "privacy.assume_public=[start]"]  # fmt: skip
    edp_mx("train", folder / "dp_sgd.yaml", "--run", run, "--set", *settings)
    edp_mx("attack", run, "--lira", 4, "--jobs", 2, "--canaries", "--canary-count", 1,
           "--candidates", 20)  # fmt: skip
    found = read(run / "attack-lira", "attack")
    assert found["facts"]["shadows"] == 4
    assert 0.3 < found["results"][0]["auc"]["value"] < 0.7  # by chance 0.5: one epoch with noise
    assert len(read(run / "attack-canaries", "exposure")["canaries"]) == 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["data.vocabulary.source=checkpoint"], "checkpoint needs a folder in model.start_from"),
        (["data.vocabulary.source=embeddings", "data.embeddings.path={}.vec"], "word vectors need"),
        (["data.max_pieces=600"], "data.max_pieces is 600, but the model has only 512 positions"),
        (["model.checkpoint=absent", "data.vocabulary.source=checkpoint"], "absent"),
    ],
)
def test_what_does_not_go_together_is_refused(folder, tmp_path, settings, told):
    (tmp_path / "any.vec").touch()
    result = edp_mx("train", folder / "sgd.yaml", "--run", tmp_path / "run", "--set",
                    *TINY, *(text.format(tmp_path / "any") for text in settings),
                    code=2)  # fmt: skip
    assert told in result.stderr


def test_a_checkpoint_of_another_size_is_refused_with_what_to_leave_out(folder, tmp_path):
    if not (folder / "checkpoint").exists():
        edp_mx("export", folder / "sgd", "--to", "huggingface", "--out", folder / "checkpoint")
    result = edp_mx("train", folder / "sgd.yaml", "--run", tmp_path / "run", "--set", *TINY,
                    f"model.checkpoint={folder / 'checkpoint'}", "model.hidden_size=64",
                    "data.vocabulary.source=checkpoint", code=2)  # fmt: skip
    assert "is a BERT with hidden_size 32; leave out model.hidden_size" in result.stderr


@pytest.mark.parametrize("trained", ["heads", pytest.param("rgp", marks=pytest.mark.slow)])
def test_an_interrupted_run_goes_on_from_the_start_that_it_began_with_alone(
    trained, folder, tmp_path
):
    """Its checkpoint has what training changes, which for RGP are weights without a gradient."""
    start, run = tmp_path / "start", tmp_path / "killed"
    shutil.copytree(folder / "sgd", start)
    arguments = [folder / "sgd.yaml", "--set", *TINY, f"model.start_from={start}",
                 "data.vocabulary.source=checkpoint", f"model.trained={trained}",
                 "training.epochs=3", "training.checkpoints.every_steps=3"]  # fmt: skip
    edp_mx("train", *arguments, "--run", tmp_path / "whole")
    interrupted("train", *arguments, "--run", run, after=13)  # of 24 steps
    assert not (run / "results.json").exists()
    with np.load(run / "checkpoint.npz") as kept:
        names = {name.partition("/")[2] for name in kept if name.startswith("weights/")}
    assert any("encoder" in name for name in names) == (trained == "rgp")
    before, wanted = weights(start), weights(tmp_path / "whole")
    still = min(set(before) - names)
    assert (before[still] == wanted[still]).all()
    np.savez(start / "weights.npz", **{**before, still: 2 * before[still]})
    refused = edp_mx("train", "--resume", run, code=2).stderr
    assert "the frozen weights, which come from its start, are other ones now" in refused
    shutil.copy(folder / "sgd" / "weights.npz", start)
    edp_mx("train", "--resume", run)
    assert all((values == wanted[name]).all() for name, values in weights(run).items())
    assert rows(run)[-1]["loss"] == rows(tmp_path / "whole")[-1]["loss"]
