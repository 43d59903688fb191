"""The CRF block: what autograd sees of it."""

import subprocess
import sys

import mxnet as mx
import numpy as np
import pytest
from crf_oracle import enumerate_paths, enumerated_loss, features, random_chain
from mxnet import autograd
from mxnet.gluon import nn

from edp_mx.models.crf import CRF

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
