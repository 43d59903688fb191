"""The CRF's loss, its marginals and its best paths, by enumeration."""

import subprocess
import sys
import tracemalloc

import mxnet as mx
import numpy as np
import pytest
from crf_oracle import enumerate_paths, enumerated_loss, features, random_chain
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.models import forward_backward
from edp_mx.models.crf import CRF
from edp_mx.models.forward_backward import Chain, marginals, negative_log_likelihood
from edp_mx.models.viterbi import best_tags

LENGTHS = np.array([4, 2, 1])


def crf_with(chain):
    crf = CRF(len(chain.start), prefix="crf_")
    crf.initialize()
    for name, scores in chain._asdict().items():
        getattr(crf.scores, name).set_data(mx.nd.array(scores))
    return crf


@pytest.fixture
def example():
    """CRF, emissions (3, 4, 3), tags (3, 4)."""
    rng = np.random.default_rng(7)
    emissions = mx.nd.array(rng.normal(0, 2, (3, 4, 3)))
    emissions.attach_grad()
    return crf_with(random_chain(rng, 3)), emissions, rng.integers(0, 3, (3, 4))


def enumerated_gradients(crf, emissions, tags, weights):
    """Weighted sum over the examples, by enumeration: losses, emissions', chain's gradients."""
    losses, by_emissions, by_chain = [], np.zeros(emissions.shape), [0.0, 0.0, 0.0]
    for row, (length, weight) in enumerate(zip(LENGTHS, weights)):
        scores = emissions.asnumpy().astype(np.float64)[row, :length]
        loss, expected = enumerated_loss(scores, tags[row, :length], crf.chain())
        losses.append(loss)
        by_emissions[row, :length] = weight * expected[0]
        by_chain = [total + weight * part for total, part in zip(by_chain, expected[1:])]
    return losses, by_emissions, by_chain


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.3, -2.0, 0.0]])
def test_head_gradients_are_honoured(example, weights):
    crf, emissions, tags = example
    with autograd.record():
        loss = crf(emissions, tags, LENGTHS)
    loss.backward(mx.nd.array(weights))
    losses, by_emissions, by_chain = enumerated_gradients(crf, emissions, tags, weights)
    np.testing.assert_allclose(loss.asnumpy(), losses, rtol=1e-6)
    assert (loss.asnumpy() == crf(emissions, tags, LENGTHS).asnumpy()).all()  # not recorded
    np.testing.assert_allclose(emissions.grad.asnumpy(), by_emissions, atol=1e-6)
    for name, expected in zip(("transitions", "start", "end"), by_chain):
        np.testing.assert_allclose(getattr(crf.scores, name).grad().asnumpy(), expected, atol=1e-6)


def test_gradients_accumulate_with_grad_req_add(example):
    crf, emissions, tags = example
    crf.collect_params().setattr("grad_req", "add")
    crf.collect_params().zero_grad()
    for _ in range(2):
        with autograd.record():
            loss = crf(emissions, tags, LENGTHS)
        loss.backward()
    _, _, by_chain = enumerated_gradients(crf, emissions, tags, [2.0, 2.0, 2.0])
    for name, expected in zip(("transitions", "start", "end"), by_chain):
        np.testing.assert_allclose(getattr(crf.scores, name).grad().asnumpy(), expected, atol=2e-6)


def test_decode_with_confidence(example):
    crf, emissions, _ = example
    scores = emissions.asnumpy().astype(np.float64)
    tags, confidences = crf.decode(scores, LENGTHS)
    for row, length in enumerate(LENGTHS):
        paths, path_scores = enumerate_paths(scores[row, :length], crf.chain())
        best = paths[path_scores.argmax()]
        probabilities = np.exp(path_scores - path_scores.max())
        unary = sum(
            p * features(path, 3)[0] for p, path in zip(probabilities / probabilities.sum(), paths)
        )
        assert tuple(tags[row]) == best
        np.testing.assert_allclose(confidences[row], unary[np.arange(length), best], atol=1e-6)


def train_after_a_hybridized_layer():
    """Some steps of a hybridized layer below a CRF; run in other engines too."""
    layer, crf = nn.Dense(3, flatten=False, in_units=2, prefix="dense_"), CRF(3, prefix="crf_")
    layer.initialize(mx.init.Zero())
    crf.initialize(mx.init.Zero())
    layer.hybridize(static_alloc=True)
    rng = np.random.default_rng(9)
    inputs, tags = mx.nd.array(rng.normal(size=(3, 4, 2))), rng.integers(0, 3, (3, 4))
    parameters = [*layer.collect_params().values(), *crf.collect_params().values()]
    for _ in range(20):
        with autograd.record():
            loss = crf(layer(inputs), tags, LENGTHS)
        loss.backward()
        for parameter in parameters:
            parameter.set_data(parameter.data() - 0.3 * parameter.grad())
    return loss.asnumpy()


def test_no_deadlock_in_either_engine():
    code = "import test_crf; print(test_crf.train_after_a_hybridized_layer().tolist())"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": "", "MXNET_ENGINE_TYPE": engine, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            check=True,
            timeout=250,  # also on a busy machine
            text=True,
        ).stdout
        for engine in ("NaiveEngine", "ThreadedEnginePerDevice")
    ]
    assert found[0] == found[1]
    assert eval(found[0]) == pytest.approx(train_after_a_hybridized_layer().tolist(), rel=1e-6)
    assert max(eval(found[0])) < 3


def every_way(emissions, chain):
    """Viterbi for one utterance (T, K), one tag after the other: no tag is left out."""
    best, came_from = chain.start + emissions[0], []
    for scores in emissions[1:]:
        ways = [best + chain.transitions[:, tag] for tag in range(len(best))]
        came_from.append([int(way.argmax()) for way in ways])
        best = np.array([way.max() for way in ways]) + scores
    best = best + chain.end
    path = [int(best.argmax())]
    for sources in came_from[::-1]:
        path.append(sources[path[-1]])
    return path[::-1], best.max()


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    num_tags=st.integers(1, 12),
    spread=st.sampled_from([0.0, 0.01, 0.3, 3.0]),
    has_ties=st.booleans(),
    forbidden=st.booleans(),
    padding=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_same_bits_as_when_no_tag_is_left_out(
    lengths, num_tags, spread, has_ties, forbidden, padding, seed
):
    rng = np.random.default_rng(seed)
    emissions = rng.normal(0, 2, (len(lengths), max(lengths) + padding, num_tags))
    chain = random_chain(rng, num_tags, spread)
    if has_ties:
        emissions, chain = np.round(emissions), Chain(*(np.round(scores) for scores in chain))
    if forbidden:
        chain.transitions[rng.random((num_tags, num_tags)) < 0.3] = rng.choice([-1e4, -np.inf])
    tags, scores = best_tags(emissions, np.array(lengths), chain)
    for row, length in enumerate(lengths):
        path, score = every_way(emissions[row, :length], chain)
        assert tags[row].tolist() == path
        assert scores[row] == score


def test_an_utterance_that_is_not_finite_spoils_no_other():
    rng = np.random.default_rng(1)
    emissions, chain = rng.normal(0, 2, (5, 4, 6)), random_chain(rng, 6)
    expected, _ = best_tags(emissions, [4, 2, 4, 3, 4], chain)
    emissions[1, 1, 2], emissions[4, 0, 3], emissions[2, 2] = np.nan, np.inf, -np.inf
    tags, scores = best_tags(emissions, [4, 2, 4, 3, 4], chain)
    assert np.isnan(scores[1]) and scores[4] == np.inf and scores[2] == -np.inf
    for row in (0, 3):
        assert tags[row].tolist() == expected[row].tolist()


def check_against_enumeration(emissions, tags, lengths, chain, tolerance=1e-10):
    result = negative_log_likelihood(emissions, tags, lengths, chain)
    for row, length in enumerate(lengths):
        loss, expected = enumerated_loss(emissions[row, :length], tags[row, :length], chain)
        assert result.loss[row] == pytest.approx(loss, rel=tolerance, abs=tolerance)
        found = result.emissions[row, :length], *(field[row] for field in result[2:])
        for name, mine, theirs in zip(result._fields[1:], found, expected):
            np.testing.assert_allclose(mine, theirs, atol=tolerance, err_msg=name)
        assert not result.emissions[row, length:].any()


@pytest.mark.parametrize("is_log_space", [False, True])
@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    num_tags=st.integers(1, 4),
    scale=st.sampled_from([1.0, 30.0, 300.0, 3e3, 1e5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_exact_against_enumeration(is_log_space, lengths, num_tags, scale, seed):
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths), num_tags)
    emissions, tags = rng.normal(0, scale, shape), rng.integers(0, num_tags, shape[:2])
    chain = random_chain(rng, num_tags, scale)
    with pytest.MonkeyPatch.context() as patch:
        if is_log_space:
            patch.setattr(forward_backward, "MAX_LOG_AMPLIFICATION", -np.inf)
        check_against_enumeration(emissions, tags, lengths, chain, 1e-9)


@pytest.mark.parametrize("is_forbidden", ["some", "all", "the true ones"])
def test_forbidden_transitions(is_forbidden):
    rng = np.random.default_rng(4)
    chain, lengths = random_chain(rng, 3), np.array([5, 3, 1])
    tags = np.array([[0, 1, 2, 2, 0], [2, 2, 1, 0, 0], [1, 0, 0, 0, 0]])
    chosen = {
        "some": np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0]], bool),
        "all": np.ones((3, 3), bool),
        "the true ones": np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], bool),
    }[is_forbidden]
    chain.transitions[chosen] = -1e4
    check_against_enumeration(rng.normal(0, 2, (3, 5, 3)), tags, lengths, chain, 1e-7)


def test_a_path_that_underflows_and_comes_back():
    """e^-900 at token 0 is lost in float64, yet this path wins after three costly steps."""
    emissions = np.array([[[0.0, -900.0], [-400.0, 0.0], [-400.0, 0.0], [-400.0, 0.0]]])
    chain = Chain(np.array([[0.0, -2e3], [-2e3, 0.0]]), np.zeros(2), np.zeros(2))
    _, is_exact = forward_backward._scaled_marginals(emissions, np.array([4]), chain)
    assert not is_exact[0], "the scaled pass must know that it lost the winner"
    check_against_enumeration(emissions, np.array([[1, 1, 1, 1]]), np.array([4]), chain)
    assert marginals(emissions, [4], chain).unary[0, :, 1] == pytest.approx([1, 1, 1, 1])


@pytest.mark.parametrize("extreme", [1e4, 1e30, -1e30])
def test_finite_at_extreme_scores(extreme):
    rng = np.random.default_rng(2)
    emissions = rng.normal(0, 1, (3, 6, 4))
    emissions[0, 2, 1] = emissions[1, :, 0] = emissions[2] = extreme
    result = negative_log_likelihood(
        emissions, rng.integers(0, 4, (3, 6)), np.array([6, 4, 1]), random_chain(rng, 4, 1e4)
    )
    for field in result:
        assert np.isfinite(field).all()
    assert np.abs(result.emissions).max() <= 1 + 1e-9


def test_padding_and_neighbours_change_nothing():
    rng = np.random.default_rng(5)
    chain, lengths = random_chain(rng, 4), np.array([3, 2, 3])
    emissions, tags = rng.normal(size=(3, 3, 4)), rng.integers(0, 4, (3, 3))
    alone = negative_log_likelihood(emissions[1:2, :2], tags[1:2, :2], lengths[1:2], chain)
    emissions[1, 2], tags[1, 2] = np.nan, -1
    emissions[2, 0, 0] = np.nan
    together = negative_log_likelihood(emissions, tags, lengths, chain)
    assert np.isnan(together.loss).tolist() == [False, False, True]
    assert together.loss[1] == pytest.approx(alone.loss[0], rel=1e-14)
    np.testing.assert_allclose(together.emissions[1, :2], alone.emissions[0], atol=1e-14)
    np.testing.assert_allclose(together.transitions[1], alone.transitions[0], atol=1e-14)
    assert not together.emissions[1, 2].any()


@pytest.mark.parametrize("is_log_space", [False, True])
def test_many_tags_are_decoded_in_little_memory_and_to_the_same_bits(is_log_space, monkeypatch):
    """Of 64 utterances and 400 tags, all moves at once are 82 MB, as float64."""
    rng = np.random.default_rng(6)
    emissions, lengths = rng.normal(0, 1, (64, 4, 400)), rng.integers(1, 5, 64)
    chain = random_chain(rng, 400)
    if is_log_space:
        monkeypatch.setattr(forward_backward, "MAX_LOG_AMPLIFICATION", -np.inf)
        emissions, lengths = emissions[:8], lengths[:8]  # which is slow
    whole, (paths, scores) = (
        marginals(emissions, lengths, chain),
        best_tags(emissions, lengths, chain),
    )
    assert whole.pairwise.sum(axis=(1, 2)) == pytest.approx(lengths - 1)
    monkeypatch.setattr(forward_backward, "MOST_MOVES", 2 * 400**2)
    tracemalloc.start()
    parts = marginals(emissions, lengths, chain, has_pairs=False)
    found, few = best_tags(emissions, lengths, chain)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24 and parts.pairwise.size == 0
    np.testing.assert_array_equal(parts.unary, whole.unary)
    np.testing.assert_array_equal(parts.log_partition, whole.log_partition)
    np.testing.assert_array_equal(few, scores)
    for one, other in zip(found, paths):
        np.testing.assert_array_equal(one, other)


def test_the_moves_of_a_chunk_are_about_a_gigabyte():
    """An example has K·K of them: at 2,001 tags 4 million, of which 17 bytes each are held."""
    assert CRF(2001).most_at_once == 16
    assert CRF(241).most_at_once > 1024  # where a chunk stays what is set
