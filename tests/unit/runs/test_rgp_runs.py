"""Runs with reparametrised gradients: what they train, what they leave, and after a crash."""

from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest

from edp_mx.config import dump_config, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.dp.weights import weights_of
from edp_mx.models.rgp import RGP
from edp_mx.runs import train as runs
from edp_mx.runs.build import model_for
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import load_run
from edp_mx.runtime.distributed import start
from edp_mx.runtime.npz import read_arrays
from edp_mx.runtime.progress import no_progress

CONFIG = """
data:
  {{corpus: communication, size: 100, vocabulary: {{source: sample}}, labels: {{source: sample}}}}
privacy: {privacy}
training: {{epochs: {epochs}, batch_size: 8, learning_rate: 0.02, optimizer: {optimizer},
  average: {{kind: {average}}}}}
model: {{family: bert, num_layers: 2, num_heads: 2, hidden_size: 8, intermediate_size: 12,
  dropout: 0, trained: rgp, rgp_rank: 2}}
"""
PRIVACY = {
    "dp_sgd": "{mechanism: dp_sgd, clipping: ghost, noise_multiplier: 0, max_grad_norm: 5}",
    "edp_sgd": "{mechanism: edp_sgd, noise_multiplier: 0, max_grad_norm: 5}",
    "none": "{mechanism: none}",
}


def run(tmp_path, name="run", mechanism="dp_sgd", *, epochs=3, optimizer="adam", average="none"):
    """Trains in a folder of a name, resumes what is there; the losses, weights before and after."""
    privacy = PRIVACY[mechanism]
    text = CONFIG.format(privacy=privacy, epochs=epochs, optimizer=optimizer, average=average)
    (tmp_path / "run.yaml").write_text(text)
    config = load_config(tmp_path / "run.yaml")
    directory = RunDirectory(tmp_path / name)
    if not directory.config.exists():
        directory.create(name, dump_config(config))
    runs.train(config, start(), directory, no_progress)
    before = weights_of(prepare_corpus(load_corpus(config.data), config, start()).model)
    losses = [row["loss"] for row in directory.epochs()]
    return losses, before, read_arrays(directory.weights, "weights")


@pytest.mark.parametrize(
    "mechanism",
    ["dp_sgd", *(pytest.param(name, marks=pytest.mark.slow) for name in ("edp_sgd", "none"))],
)
def test_weights_of_all_layers_and_heads_learn_and_nothing_else(mechanism, tmp_path):
    losses, before, after = run(tmp_path, mechanism=mechanism)
    assert losses[-1] < 0.8 * losses[0]
    carried = {name.replace("rgp_down_", "") for name in after if name.endswith("rgp_down_weight")}
    moved = {
        name for name in after if (after[name] != before[name]).any() and not RGP().trains(name)
    }
    assert len(carried) == 13
    assert moved == carried | {name for name in after if name.startswith(("intent_", "slot_"))}


@pytest.mark.parametrize("optimizer", ["adam", pytest.param("sgd", marks=pytest.mark.slow)])
def test_a_resumed_run_ends_with_the_weights_of_one_that_was_not_interrupted(
    optimizer, tmp_path, monkeypatch
):
    settings = {"epochs": 2, "optimizer": optimizer, "average": "ema"}
    _, _, expected = run(tmp_path, "whole", **settings)
    write = runs._Run._checkpoint

    def killed(self, epoch):
        write(self, epoch)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs._Run, "_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "interrupted", **settings)
    _, _, found = run(tmp_path, "interrupted", **settings)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_the_trained_model_is_an_ordinary_one(tmp_path):
    run(tmp_path, epochs=1)
    found = load_run(tmp_path / "run")
    weights = weights_of(found.model)
    config = replace(found.config, model=replace(found.config.model, trained="all"))
    plain = model_for(config, found.vocabulary, mx.cpu())
    for name, parameter in plain.collect_params().items():
        parameter.set_data(mx.nd.array(weights[name]))
    spoken = [["call", "my", "mother"], ["stop"]]
    expected = found.predict(spoken)
    for ours, theirs in zip(replace(found, model=plain).predict(spoken), expected):
        assert ours == theirs
