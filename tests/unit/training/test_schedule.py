"""The learning rate: its factor in closed form, and by group, seen in what a step changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd, gluon
from support.models import FAMILIES, random_batch, tiny

from edp_mx.runs.build_training import set_learning_rates
from edp_mx.training.config import LearningRates, Schedule

totals = st.integers(1, 400)
fractions = st.floats(0, 0.99)


@given(st.sampled_from(["constant", "linear"]), fractions, totals)
def test_it_lies_between_nothing_and_one_and_no_step_is_lost(kind, fraction, total):
    factors = [Schedule(kind, fraction).factor(step, total) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    peak = max(range(total), key=factors.__getitem__)
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)


def test_linear_rises_and_falls_by_equal_steps():
    schedule = Schedule("linear", 0.1)
    factors = [schedule.factor(step, 100) for step in range(101)]
    assert factors[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert factors[10:] == pytest.approx([(100 - step) / 90 for step in range(10, 101)])
    assert schedule.factor(1000, 100) == 0


def test_constant_stays_at_the_top():
    factors = [Schedule("constant", 0.2).factor(step, 10) for step in range(10)]
    assert factors == [0.5] + [1.0] * 9
    assert {Schedule().factor(step, 10) for step in range(10)} == {1.0}


def moves(family, rates):
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
@pytest.mark.parametrize("rates", [LearningRates(), LearningRates(heads=0.5)])
def test_the_heads_move_with_their_own_rate(family, rates):
    for name, rate in moves(family, rates).items():
        expected = (name.startswith(("intent_", "slot_")) and rates.heads) or 0.1
        assert rate == pytest.approx(expected, rel=1e-3), name
