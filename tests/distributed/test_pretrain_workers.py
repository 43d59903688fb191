"""Pre-training with two real workers: the mean of their gradients, and a killed one."""

import numpy as np
import pytest
from support.pretraining import kill_in_the_middle, pretrain, rows, write_config
from support.workers import run_workers

STEPS = 6
RATE, DECAY, NORM = 0.01, 0.01, 0.5


def train_worker(path, steps, rate, decay, norm):
    """Runs on a worker: real batches, model and trainer; returns batches, start and end."""
    import gluonnlp  # noqa: F401 (registers BERTAdam)
    import mxnet as mx
    from mxnet import autograd

    from edp_mx.config import load_config
    from edp_mx.data.text import Text
    from edp_mx.data.wordpiece import WordPiece
    from edp_mx.data.wordpiece_learning import learn_pieces
    from edp_mx.dp.privacy.flat import FlatGradients
    from edp_mx.dp.privacy.layers import layers_of
    from edp_mx.dp.privacy.trainer import PublicTrainer
    from edp_mx.dp.weights import weights_of
    from edp_mx.runs.pretraining.config import PretrainingConfig
    from edp_mx.runs.pretraining.model import build_model
    from edp_mx.runs.pretraining.text import read_text
    from edp_mx.runtime import distributed

    workers = distributed.start()
    config = load_config(path, ["model.dropout=0.0"], kind=PretrainingConfig)
    wordpiece = WordPiece(learn_pieces(Text.open(config.text).lines(), size=100))
    text = read_text(config, wordpiece, workers)
    model = build_model(config, num_pieces=len(wordpiece), context=mx.cpu())
    trainer = PublicTrainer(
        flat=FlatGradients(layers_of(model)),
        optimizer="bertadam",
        optimizer_params={"learning_rate": rate, "wd": decay},
        max_grad_norm=norm,
    )
    start, losses, batches = weights_of(model), [], []
    for _, batch in zip(range(steps), text.training(epoch=0)):
        with autograd.record():
            loss = model.loss(batch)
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
        batches.append(batch)
    return config.model, len(wordpiece), start, batches, losses, weights_of(model)


def simulate(results, steps, rate, decay, norm):
    """One process in the workers' place: the mean of their gradients, its norm cut, BERTAdam.

    Source: Devlin et al.'s code: w ← w − η (m / (√v + 1e-6) + λ w), without bias correction.
    """
    import mxnet as mx
    from mxnet import autograd

    from edp_mx.models.pretraining import MaskedLanguageModel

    config, num_pieces, start = results[0][:3]
    model = MaskedLanguageModel(config, num_pieces=num_pieces)
    model.initialize()
    parameters = model.collect_params()
    weights = {name: value.astype(np.float64) for name, value in start.items()}
    moments = {name: [0.0, 0.0] for name in weights}
    losses = []
    for step in range(steps):
        for name, parameter in parameters.items():
            parameter.set_data(mx.nd.array(weights[name]))
        gradients, losses_now = {}, []
        for result in results:
            with autograd.record():
                loss = model.loss(result[3][step])
            loss.backward()
            losses_now.append(float(loss.asscalar()))
            for name, parameter in parameters.items():
                if parameter.grad_req != "null":
                    gradient = parameter.grad().asnumpy().astype(np.float64) / len(results)
                    gradients[name] = gradients.get(name, 0) + gradient
        losses.append(losses_now)
        size = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        for name, gradient in gradients.items():
            gradient = gradient * min(1, norm / size)
            mean, square = moments[name]
            moments[name] = mean, square = (0.9 * mean + 0.1 * gradient,
                                            0.999 * square + 0.001 * gradient**2)  # fmt: skip
            change = mean / (np.sqrt(square) + 1e-6) + decay * weights[name]
            weights[name] = weights[name] - rate * change
    return losses, weights


def test_two_workers_do_what_one_process_does_with_the_mean_of_their_gradients(tmp_path):
    config = write_config(tmp_path, lines=600)
    results = run_workers(train_worker, 2, str(config), STEPS, RATE, DECAY, NORM)
    losses, weights = simulate(results, STEPS, RATE, DECAY, NORM)
    for rank, (*_, batches, seen, end) in enumerate(results):
        assert {len(batch.lengths) for batch in batches} == {8}
        np.testing.assert_allclose(seen, [pair[rank] for pair in losses], rtol=1e-3)
        for name, value in end.items():
            np.testing.assert_array_equal(value, results[0][-1][name])
            np.testing.assert_allclose(value, weights[name], atol=2e-3)
    moved = [np.abs(end_value - results[0][2][name]).max()
             for name, end_value in results[0][-1].items()]  # fmt: skip
    assert np.median(moved) > 0.02  # ten times what is allowed above


@pytest.mark.slow  # one worker's is in the default suite
@pytest.mark.parametrize("rank", [1, 0])
def test_a_killed_job_goes_on_with_the_same_curve(two, tmp_path, rank):
    run, config = two
    kill_in_the_middle(tmp_path / "run", config, num_workers=2, rank=rank)
    assert "resuming after step" in pretrain(2, "--resume", tmp_path / "run").stderr
    assert rows(tmp_path / "run") == rows(run)
    tensors = [(folder / "model" / "model.safetensors").read_bytes()
               for folder in (run, tmp_path / "run")]  # fmt: skip
    assert tensors[0] == tensors[1]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run of two workers that nobody disturbed."""
    folder = tmp_path_factory.mktemp("two")
    config = write_config(folder)
    pretrain(2, config, "--run", folder / "run")
    return folder / "run", config


@pytest.mark.slow  # as in training: test_watchdog.py
def test_an_error_is_said_once(tmp_path):
    config = write_config(tmp_path, lines=40)
    settings = ["pretraining.batch_size=64", "text.held_out_fraction=0.3"]
    result = pretrain(2, config, "--run", tmp_path / "run", "--set", *settings, code=2)
    assert result.stderr.count("pretraining.batch_size: 64 is more than the") == 1
