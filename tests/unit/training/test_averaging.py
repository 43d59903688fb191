"""Averages of the weights over the steps, against sums written out."""

import numpy as np
import pytest
from mxnet.gluon import nn

from edp_mx.config import load_config
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.train import train
from edp_mx.runtime.distributed import start
from edp_mx.runtime.npz import read_arrays
from edp_mx.training.averaging import WeightAverage
from edp_mx.training.loop import TrainingLoop

SETTINGS = """
data: {corpus: communication, size: 100, vocabulary: {source: sample}, labels: {source: sample}}
model: {family: clc, hidden_size: 4, dropout: 0}
privacy: {mechanism: none}
training: {epochs: 3, batch_size: 10, average: {kind: ema, decay: 0.8}}
"""


@pytest.fixture
def weight():
    layer = nn.Dense(2, in_units=1)
    layer.initialize()
    return layer.weight


def averaged(weight, decay, steps):
    average = WeightAverage([weight], decay=decay)
    for step, value in enumerate(steps):
        weight.set_data(np.float32([[value], [-value]]))
        average.add(step)
    return average


def forgetful(steps):
    """The average written out."""
    average = steps[0]
    for t in range(1, len(steps)):
        kept = min(0.8, (1 + t) / (10 + t))
        average = kept * average + (1 - kept) * steps[t]
    return average


def test_the_exponential_average_forgets_its_beginning(weight):
    steps = np.arange(60.0)
    average, expected = averaged(weight, 0.8, steps), forgetful(steps)
    np.testing.assert_allclose(average.values[weight.name][0], expected, rtol=1e-5)


def test_training_goes_on_from_the_last_weights(weight):
    average = averaged(weight, 0.1, [2, 4])
    with average.applied():
        np.testing.assert_allclose(weight.data().asnumpy(), [[3.8], [-3.8]], rtol=1e-6)
    np.testing.assert_allclose(weight.data().asnumpy(), [[4], [-4]])
    average.apply()
    np.testing.assert_allclose(weight.data().asnumpy(), [[3.8], [-3.8]], rtol=1e-6)


def test_a_run_ends_with_the_average_of_its_weights_also_when_resumed(tmp_path, monkeypatch):
    (tmp_path / "run.yaml").write_text(SETTINGS)
    config = load_config(tmp_path / "run.yaml")
    seen = []
    add = WeightAverage.add

    def watched(self, step):
        seen.append(self._parameters["intent_dense_weight"].data().asnumpy().copy())
        add(self, step)

    monkeypatch.setattr(WeightAverage, "add", watched)

    def run(name, stop_after=None):
        folder = RunDirectory(tmp_path / name)
        folder.path.mkdir(exist_ok=True)
        folder.config.write_text(SETTINGS)
        epochs = TrainingLoop.epochs

        def interrupted(self, *arguments, **options):
            for number, epoch in enumerate(epochs(self, *arguments, **options), 1):
                yield epoch
                if number == stop_after:
                    raise KeyboardInterrupt

        if stop_after:
            monkeypatch.setattr(TrainingLoop, "epochs", interrupted)
            with pytest.raises(KeyboardInterrupt):
                train(config, start(), folder, lambda steps, *_: steps)
            monkeypatch.setattr(TrainingLoop, "epochs", epochs)
            return None
        train(config, start(), folder, lambda steps, *_: steps)
        return read_arrays(folder.weights, "weights")["intent_dense_weight"]

    ended = run("whole")
    np.testing.assert_allclose(ended, forgetful(seen), atol=1e-6)
    run("stopped", stop_after=2)
    np.testing.assert_allclose(run("stopped"), ended, atol=1e-6)
