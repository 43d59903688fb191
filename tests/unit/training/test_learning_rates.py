"""Learning rates by group, seen in what a step changes."""

import numpy as np
import pytest
from mxnet import autograd, gluon
from support.models import FAMILIES, random_batch, tiny

from edp_mx.runs.build_training import set_learning_rates
from edp_mx.training.config import LearningRates


def steps(family, rates):
    """How far plain gradient descent with rate 0.1 moves each parameter, over its gradient."""
    model = tiny(family)
    set_learning_rates(model, 0.1, rates)
    trainer = gluon.Trainer(
        model.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0}, kvstore=None
    )
    before = {name: p.data().asnumpy().copy() for name, p in model.collect_params().items()}
    with autograd.record():
        loss = model.loss(random_batch(np.random.default_rng(0), [3, 2], family)).sum()
    loss.backward()
    trainer.step(1)
    moved = {}
    for name, parameter in model.collect_params().items():
        gradient = parameter.grad().asnumpy()
        change = before[name] - parameter.data().asnumpy()
        moved[name] = float((change * gradient).sum() / np.square(gradient).sum())
    return moved


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rates", [LearningRates(), LearningRates(embeddings=0.02, heads=0.5)])
def test_each_group_moves_with_its_own_rate(family, rates):
    told = {
        "clc": ("words_weight",),
        "bert": ("embed_embedding0_weight", "position_weight", "encoder_layernorm0"),
    }
    for name, rate in steps(family, rates).items():
        expected = 0.1
        if name.startswith(("intent_", "slot_")):
            expected = rates.heads or 0.1
        elif any(part in name for part in told[family]):
            expected = rates.embeddings or 0.1
        assert rate == pytest.approx(expected, rel=1e-3), name
