"""Models of pieces, and what is asked of the gradients of each."""

from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from support.models import central_difference

from edp_mx.config import ExperimentConfig
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.runs.build import model_for

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12,
         "max_positions": 24, "dropout": 0.0}  # fmt: skip


def drawn_model(task, model, vocabulary, *, is_hybrid=True):
    """Drawn widely enough for every path to matter."""
    config = ExperimentConfig(task=task, model=model)
    config = replace(config, data=replace(config.data, max_pieces=24))
    model = model_for(config, vocabulary, mx.cpu())
    generator = np.random.default_rng(7)
    for name, parameter in model.collect_params().items():
        values = generator.normal(size=parameter.shape) * 0.4 + name.endswith("gamma")
        parameter.set_data(mx.nd.array(values))
    model.hybridize(is_hybrid, static_alloc=is_hybrid)
    return model


def seeded_loss(model, batch, *place):
    seed_dropout(*place)
    return model.loss(batch)


def gradients_of(model, batch):
    with autograd.record():
        loss = seeded_loss(model, batch, 5)
    loss.backward()
    return {name: parameter.grad().asnumpy().copy()
            for name, parameter in model.collect_params().items()
            if parameter.grad_req != "null"}  # fmt: skip


def assert_finite_differences(model, batch, generator):
    """Compare every gradient; return the names of the parameters that have one."""
    found = gradients_of(model, batch)
    for name, gradient in found.items():
        parameter = model.collect_params()[name]
        way = generator.normal(size=parameter.shape)
        way *= 1e-2 / np.linalg.norm(way)
        value = lambda: float(seeded_loss(model, batch, 5).sum().asscalar())  # noqa: E731
        expected = central_difference(parameter, way, value) / 2
        assert (gradient * way).sum() == pytest.approx(expected, rel=0.03, abs=3e-4), name
        assert np.abs(gradient).max() > 0, name
    return found.keys()


def assert_undisturbed(hybrid, plain, corpus):
    """Compare the gradients of batches of changing shapes."""
    for rows in ([0, 1, 2], [3], [0, 4, 5, 2], [0, 1, 2]):
        batch = corpus.batch(rows)
        for name, gradient in gradients_of(hybrid, batch).items():
            np.testing.assert_allclose(gradient, gradients_of(plain, batch)[name], atol=1e-4)
