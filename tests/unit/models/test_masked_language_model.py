"""The masked-LM loss and its gradients, against float64 NumPy and finite differences."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from scipy.special import erf
from support.models import central_difference

from edp_mx.data.masking import MaskedBatch
from edp_mx.models.bert import BERTConfig
from edp_mx.models.initialization import initialize
from edp_mx.models.pretraining import MaskedLanguageModel

PIECES, WIDTH = 13, 8
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": WIDTH, "intermediate_size": 12,
         "max_positions": 12}  # fmt: skip


def model_of(seed=0, is_hybrid=True, **config):
    """Drawn widely enough for every path to matter."""
    model = MaskedLanguageModel(
        BERTConfig(**{**SIZES, "dropout": 0.0, **config}), num_pieces=PIECES
    )
    rule = lambda name, shape, g: g.normal(size=shape) * 0.4 + name.endswith("gamma")  # noqa: E731
    initialize(model, seed=seed, context=mx.cpu(), rule=rule)
    if is_hybrid:
        model.hybridize(static_alloc=True)
    return model


def batch_of(generator, count=4, length=7, places=5):
    lengths = generator.integers(3, length + 1, count).astype(np.int32)
    lengths[0] = length
    pieces = generator.integers(1, PIECES, (count, length)).astype(np.int32)
    pieces *= np.arange(length) < lengths[:, None]
    rows = generator.integers(0, count, places)
    columns = generator.integers(0, lengths[rows])
    targets = generator.integers(0, PIECES, places).astype(np.int32)
    return MaskedBatch(pieces, lengths, np.stack([rows, columns]).astype(np.int32), targets,
                       np.ones(places, np.float32))  # fmt: skip


def value_of(parameter):
    return parameter.data().asnumpy().astype(np.float64)


def log_probabilities_by_hand(model, batch):
    """The head over BERT's own states. Shapes: → (K, V)."""
    head = model.head
    states, _ = model.bert(mx.nd.array(batch.pieces, dtype="int32"),
                           mx.nd.array(batch.lengths, dtype="float32"))  # fmt: skip
    states = states.asnumpy().astype(np.float64)[tuple(batch.places)]  # (K, H)
    states = states @ value_of(head.transform.weight).T + value_of(head.transform.bias)
    states = 0.5 * states * (1 + erf(states / np.sqrt(2)))
    states = (states - states.mean(1, keepdims=True)) / states.std(1, keepdims=True)
    states = states * value_of(head.norm.gamma) + value_of(head.norm.beta)
    scores = states @ value_of(model.bert.piece_embedding).T + value_of(head.bias)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


def test_the_loss_and_the_guesses_are_those_of_the_head_by_hand(generator):
    model, batch = model_of(), batch_of(generator)
    by_hand = log_probabilities_by_hand(model, batch)
    true = by_hand[np.arange(5), batch.targets]
    assert model.loss(batch).asscalar() == pytest.approx(-true.mean(), rel=1e-4)
    guesses = model.guess(batch)
    assert guesses.loss == pytest.approx(-true.sum(), rel=1e-4)
    assert guesses.right == (by_hand.argmax(1) == batch.targets).sum()
    assert guesses.places == 5


def gradients_of(model, batch):
    with autograd.record():
        loss = model.loss(batch)
    loss.backward()
    return {name: parameter.grad().asnumpy().copy()
            for name, parameter in model.collect_params().items()
            if parameter.grad_req != "null"}  # fmt: skip


def test_every_gradient_is_that_of_finite_differences(generator):
    """The piece vectors', which lead both in and out, too."""
    model, batch = model_of(), batch_of(generator)
    for name, gradient in gradients_of(model, batch).items():
        parameter = model.collect_params()[name]
        way = generator.normal(size=parameter.shape)
        way *= 1e-2 / np.linalg.norm(way)
        expected = central_difference(parameter, way, lambda: model.loss(batch).asscalar()) / 2
        assert (gradient * way).sum() == pytest.approx(expected, rel=0.03, abs=2e-5), name
        assert np.abs(gradient).max() > 0, name


def test_batches_of_changing_shapes_do_not_disturb_each_other(generator):
    shapes = [(4, 7, 5), (2, 3, 1), (6, 12, 9), (4, 7, 5)]
    batches = [batch_of(generator, *shape) for shape in shapes]
    hybrid, plain = model_of(), model_of(is_hybrid=False)
    for batch in batches:
        for name, gradient in gradients_of(hybrid, batch).items():
            np.testing.assert_allclose(gradient, gradients_of(plain, batch)[name], atol=1e-5)


def test_padding_is_not_seen(generator):
    model, batch = model_of(), batch_of(generator)
    wider = np.pad(batch.pieces, [(0, 0), (0, 4)], constant_values=9)
    wide = MaskedBatch(wider, batch.lengths, batch.places, batch.targets, batch.counts)
    assert model.loss(wide).asscalar() == pytest.approx(model.loss(batch).asscalar(), rel=1e-5)


def test_what_counts_nothing_has_neither_loss_nor_gradient(generator):
    model, batch = model_of(), batch_of(generator, places=1)
    nothing = MaskedBatch(batch.pieces, batch.lengths, batch.places, batch.targets,
                          np.zeros(1, np.float32))  # fmt: skip
    with autograd.record():
        loss = model.loss(nothing)
    loss.backward()
    assert loss.asscalar() == 0 and model.guess(nothing) == (0, 0, 0)
    for parameter in model.collect_params().values():
        assert parameter.grad_req == "null" or not parameter.grad().asnumpy().any()


def test_the_pooler_alone_is_not_trained():
    frozen = [name for name, parameter in model_of().collect_params().items()
              if parameter.grad_req == "null"]  # fmt: skip
    assert sorted(frozen) == ["bert_pooler_bias", "bert_pooler_weight"]
