"""The cross entropy in blocks: its values, its memory, its ghost norms, beside other operators."""

import tracemalloc
from types import SimpleNamespace

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd
from support.models import random_batch, tiny

from edp_mx.dp.privacy.ghost import tied
from edp_mx.dp.privacy.ghost.block import Seen
from edp_mx.dp.privacy.ghost.next_piece import NextPieceRule
from edp_mx.dp.privacy.ghost.operands import Operand
from edp_mx.models.next_piece_loss import OPERATOR
from edp_mx.runtime import cross_entropy

V = 37


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """Five pieces or fewer in each."""
    monkeypatch.setattr(cross_entropy, "SCORES", 40)


def drawn(generator, n, r, d=6, spread=1.0):
    """States (N, R, d), a table (V, d), and targets (N, R), of which some are missing."""
    targets = generator.integers(0, V, (n, r))
    targets[:, 1:][generator.random((n, r - 1)) < 0.3] = -1
    states = spread * generator.normal(size=(n, r, d))
    return states.astype(np.float32), generator.normal(size=(V, d)).astype(np.float32), targets


def by_hand(states, table, targets):
    """Losses (N, R), and the gradients of their scores (N, R, V), in float64; 0 at padding."""
    scores = states.astype(float) @ table.T.astype(float)
    scores -= scores.max(axis=2, keepdims=True)
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    is_true = targets[:, :, None] == np.arange(V)
    is_read = (targets >= 0)[:, :, None]
    gradients = np.where(is_read, shares - is_true, 0)
    log_shares = scores - np.log(np.exp(scores).sum(axis=2, keepdims=True))
    return -(log_shares * is_true).sum(axis=2), gradients


def run(states, table, targets, upstream):
    """Losses, likeliest pieces, and the gradients of states and table."""
    arrays = [mx.nd.array(each) for each in (states, table, targets)]
    for array in arrays[:2]:
        array.attach_grad()
    with autograd.record():
        losses, likeliest, shifts, _ = mx.nd.Custom(*arrays, op_type=OPERATOR)
    losses.backward(mx.nd.array(upstream))
    found = (losses, likeliest, shifts, arrays[0].grad, arrays[1].grad)
    return [each.asnumpy() for each in found]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999), n=st.integers(1, 4), r=st.integers(1, 5),
    spread=st.sampled_from([1e-3, 1.0, 9.0]),
)  # fmt: skip
def test_losses_and_gradients_are_those_of_the_whole(seed, n, r, spread):
    generator = np.random.default_rng(seed)
    states, table, targets = drawn(generator, n, r, spread=spread)
    upstream = generator.normal(size=(n, r)).astype(np.float32)
    losses, likeliest, _, of_states, of_table = run(states, table, targets, upstream)
    wanted, gradients = by_hand(states, table, targets)
    gradients *= upstream[:, :, None]
    for found, whole in (
        (losses, wanted),
        (of_states, gradients @ table.astype(float)),
        (of_table, np.einsum("nrv,nrd->vd", gradients, states.astype(float))),
    ):
        room = 2e-6 * max(spread, 1)  # float32's, for the scores
        np.testing.assert_allclose(found, whole, rtol=0, atol=room * max(np.abs(whole).max(), 1e-3))
    best = (states @ table.T).argmax(axis=2)
    np.testing.assert_array_equal(likeliest, np.where(targets >= 0, best, 0))
    assert (losses >= 0).all()


def rule_of(states, table, targets, upstream, num_examples):
    """The rule that ghost clipping makes of what it saw."""
    _, _, shifts, _, _ = run(states, table, targets, upstream)
    operand = Operand(("table",), V)
    node = SimpleNamespace(attributes={}, name="loss")
    tap = SimpleNamespace(operands=(operand,), node=node, rule=OPERATOR)
    others = (table, targets.astype(np.float32), shifts)
    return NextPieceRule(Seen(tap, states, upstream, 0, others), num_examples, {"table": 0})


@pytest.mark.parametrize(("num_examples", "is_tied"), [(6, True), (3, True), (2, False)])
@pytest.mark.parametrize("spread", [1.0, 12.0])  # at the second many targets are nearly certain
def test_ghost_norms_and_sums_are_those_of_whole_gradients(
    num_examples, is_tied, spread, generator
):
    """Also of units of several rows, and where the look-ups all but cancel the output."""
    states, table, targets = drawn(generator, 6, 4, spread=spread)
    if spread > 1:
        states[::2] = spread * table[np.maximum(targets[::2], 0)]
    upstream = generator.normal(size=(6, 4)).astype(np.float32)
    rule = rule_of(states, table, targets, upstream, num_examples)
    _, gradients = by_hand(states, table, targets)
    gradients = (gradients * upstream[:, :, None]).reshape(num_examples, -1, V)
    whole = np.swapaxes(gradients, 1, 2) @ states.reshape(num_examples, -1, 6).astype(float)
    factors = generator.random(num_examples)
    total = np.zeros((V, 6), np.float32)
    rule.add_sums({"table": total}, factors)
    wanted = np.einsum("n,nvd->vd", factors, whole)
    np.testing.assert_allclose(total, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    sizes = np.linalg.norm(whole, axis=(1, 2))  # (N,)
    if is_tied:
        ids = np.broadcast_to(np.arange(V), (num_examples, V))
        embedded = (-0.99 * whole).astype(np.float32)
        whole = whole + embedded
        found = tied.squared_norms(rule, ids, embedded)
    else:
        ((_, found),) = rule.squared_norms()
    norms = np.linalg.norm(whole, axis=(1, 2))
    room = 1e-5 * norms + 1e-6 * spread * sizes + 1e-6 * np.abs(states).max()  # float32's
    assert (np.abs(np.sqrt(found) - norms) <= room).all()


def test_the_scores_of_all_pieces_never_exist_together(generator, monkeypatch):
    monkeypatch.setattr(cross_entropy, "SCORES", 1 << 16)
    states = generator.normal(size=(500, 8)).astype(np.float32)
    table = generator.normal(size=(20_000, 8)).astype(np.float32)
    targets = generator.integers(0, len(table), len(states))
    tracemalloc.start()
    found = cross_entropy.forward(states, table, targets)
    for _ in cross_entropy.score_gradients(states, table, targets, found.shifts):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < states.shape[0] * table.shape[0] * 4 / 20


@pytest.mark.parametrize("certainty", [15.0, 25.0, 60.0])
def test_no_example_adds_more_than_its_norm_where_its_targets_are_certain(
    certainty, generator, monkeypatch
):
    """There a score rounds differently from one product to the next by more than all the rest."""
    monkeypatch.setattr(cross_entropy, "SCORES", 4000)
    n, r, d, size = 6, 12, 64, 3000
    table = 0.05 * generator.normal(size=(size, d)).astype(np.float32)
    targets = generator.integers(0, size, (n, r))
    along = table[targets] / np.square(table[targets]).sum(axis=2, keepdims=True)
    states = (generator.normal(size=(n, r, d)) + certainty * along).astype(np.float32)
    rule = rule_of(states, table, targets, np.ones((n, r), np.float32), n)
    ((_, squares),) = rule.squared_norms()
    for place in range(n):
        total = np.zeros_like(table)
        rule.add_sums({"table": total}, np.eye(n)[place])
        added = np.sqrt(np.square(total, dtype=np.float64).sum())
        assert added <= (1 + 1e-4) * np.sqrt(squares[place])


def test_the_bi_lstm_works_beside_it(generator):
    """Both are operators in Python, of which MXNet keeps some things in common."""
    states, table, targets = drawn(generator, 2, 3)
    upstream = np.ones((2, 3), np.float32)
    model, batch = tiny("clc"), random_batch(generator, [4, 2], "clc")

    def lstm_gradients():
        with autograd.record():
            loss = model.loss(batch).sum()
        loss.backward()
        return np.concatenate(
            [p.grad().asnumpy().ravel() for p in model.collect_params().values()
             if p.grad_req != "null"]
        )  # fmt: skip

    ours, theirs = run(states, table, targets, upstream), lstm_gradients()
    for _ in range(2):
        np.testing.assert_array_equal(lstm_gradients(), theirs)
        for found, wanted in zip(run(states, table, targets, upstream), ours):
            np.testing.assert_array_equal(found, wanted)
