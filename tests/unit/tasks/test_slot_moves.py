"""Moves of slot tags that are ruled out, against the enumeration of all sequences."""

from itertools import product

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from support.drawn_runs import UTTERANCES, drawn_run

from edp_mx.metrics.spans import balanced
from edp_mx.models.crf import CRF
from edp_mx.runtime.progress import no_progress
from edp_mx.tasks.intent_slot.model import bio_moves

TAGS = ("O", "B-to", "I-to", "B-at", "I-at")
TOKENS = 4


@pytest.fixture
def drawn(generator):
    """A CRF with the moves of BIO, its own scores, and emissions (T, K)."""
    crf = CRF(len(TAGS), bio_moves(TAGS), prefix="crf_")
    mx.random.seed(int(generator.integers(1 << 30)))
    crf.initialize(mx.init.Normal(1.0))
    scores = {name: p.data().asnumpy() for name, p in crf.scores._reg_params.items()}
    return crf, scores, generator.normal(0, 3, (TOKENS, len(TAGS)))


def totals(scores, emissions):
    """The score of each sequence that BIO allows, by its own parameters alone."""
    found = {}
    for path in product(range(len(TAGS)), repeat=TOKENS):
        names = tuple(TAGS[tag] for tag in path)
        if balanced(names) == names:
            moves = sum(scores["transitions"][move] for move in zip(path, path[1:]))
            own = emissions[np.arange(TOKENS), path].sum()
            found[path] = own + moves + scores["start"][path[0]] + scores["end"][path[-1]]
    return found


def test_loss_and_best_path_are_those_of_the_allowed_sequences(drawn):
    crf, scores, emissions = drawn
    allowed = totals(scores, emissions)
    assert 0 < len(allowed) < len(TAGS) ** TOKENS
    whole = np.logaddexp.reduce([*allowed.values()])
    lengths = np.array([TOKENS])
    for path in [*allowed][:: len(allowed) // 20]:
        loss = crf(mx.nd.array(emissions[None]), np.array([path]), lengths)
        assert np.isclose(loss.asscalar(), whole - allowed[path], rtol=1e-4, atol=1e-4)
    (best,), (sure,) = crf.decode(emissions[None], lengths)
    assert tuple(best) == max(allowed, key=allowed.get)
    assert ((sure > 0) & (sure <= 1)).all()


def test_a_move_that_is_ruled_out_has_no_gradient_and_a_wrong_label_a_finite_one(drawn):
    crf, _, emissions = drawn
    for tags, is_wrong in (([0, 1, 2, 3], False), ([0, 2, 0, 0], True)):
        with autograd.record():
            loss = crf(mx.nd.array(emissions[None]), np.array([tags]), np.array([TOKENS]))
        loss.backward()
        gradient = crf.scores.transitions.grad().asnumpy()
        out = bio_moves(TAGS).transitions < 0
        assert np.isfinite(loss.asscalar()) and np.abs(gradient).max() <= TOKENS
        assert np.flatnonzero(gradient[out]).size == (1 if is_wrong else 0)


def test_a_run_answers_with_allowed_sequences_alone(tmp_path):
    def broken(moves):
        run = drawn_run(tmp_path / moves, "clc", f"model.slot_moves={moves}")
        _, found, _ = run.labelled(UTTERANCES, no_progress, option="")
        return sum(balanced(each.slots) != each.slots for each in found)

    assert broken("bio") == 0 < broken("any")
