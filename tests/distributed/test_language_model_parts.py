"""Two workers train each part of a language model as one does, where a step takes all of a text."""

import numpy as np
import pytest
from support.workers import run_workers

from edp_mx.config import load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.runs.build_training import build_training
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import start

SETTINGS = """
task: causal_lm
data: {corpus: communication, size: 80, vocabulary: {source: sample}}
privacy: {mechanism: dp_sgd, clipping: ghost, chunk_size: 7, noise_multiplier: 0,
  max_grad_norm: 0.5, sampler: shuffle, adjacency: replace_one}
training: {epochs: 3, batch_size: 36, optimizer: sgd, learning_rate: 0.5}
model: {family: gpt2, num_layers: 3, num_heads: 2, hidden_size: 8, intermediate_size: 12,
  dropout: 0}
"""
PARTS = {
    "all of it": {},
    "adapters of the top layer": {"model.trained": "lora", "model.frozen_layers": 2},
    "carriers of the top layer": {
        "model.trained": "rgp", "model.rgp_rank": 2, "model.frozen_layers": 2
    },
    "prefixes of two layers": {"model.trained": "prefix", "model.frozen_layers": 1},
    "the top layer": {"model.is_embedding_trainable": False, "model.frozen_layers": 2},
}  # fmt: skip
QUICK = "carriers of the top layer"


def train(settings, part, folder):
    """Runs on a worker: its weights before and after steps that take every record.

    All that is drawn is who has which of them.
    """
    config, workers = load_config(settings, part), start()
    prepared = prepare_corpus(load_corpus(config.data), config, workers)
    assert len(prepared.train) == config.training.batch_size
    training = build_training(prepared, config, workers, RunDirectory(folder))
    weights = training.model.collect_params()
    before = {name: each.data().asnumpy() for name, each in weights.items()}
    for _ in training.loop.epochs(lambda batches, *_: batches):
        pass
    after = {name: each.data().asnumpy() for name, each in weights.items()}
    return training.prepared.frozen is not None, before, after


@pytest.mark.parametrize(
    "part", [pytest.param(each, marks=[pytest.mark.slow] * (each != QUICK)) for each in PARTS]
)
def test_two_workers_train_as_one(part, tmp_path):
    (tmp_path / "run.yaml").write_text(SETTINGS)
    ways = []
    for num_workers in (1, 2):
        (tmp_path / str(num_workers)).mkdir()
        given = (tmp_path / "run.yaml", PARTS[part], tmp_path / str(num_workers))
        ways.append(run_workers(train, num_workers, *given))
    ((is_stored, before, alone),), both = ways
    assert is_stored == ("model.frozen_layers" in PARTS[part])
    assert sum(np.abs(alone[name] - before[name]).max() > 1e-3 for name in alone) >= 2
    for _, _, together in both:
        for name, values in alone.items():
            np.testing.assert_allclose(together[name], values, atol=1e-5, err_msg=name)
