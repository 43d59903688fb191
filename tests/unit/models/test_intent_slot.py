"""The whole model: gradients, independence of examples, names, training on views."""

import mxnet as mx
import numpy as np
import pytest
from crf_oracle import enumerate_paths, enumerated_loss
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, gluon
from support.models import (
    FAMILIES,
    SIZES,
    central_difference,
    loss_and_gradients,
    padded,
    part,
    predictions_of,
    random_batch,
    tiny,
    tiny_model,
)
from support.refusals import one_sentence


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=10)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5), seed=st.integers(0, 2**32 - 1))
def test_examples_do_not_touch_each_other(lengths, seed, family):
    """Alone or in any batch: the same loss; the batch's gradient is the sum of single ones."""
    rng = np.random.default_rng(seed)
    batch, model = random_batch(rng, lengths, family), tiny(family)
    weights = rng.normal(size=len(lengths))
    losses, gradients = loss_and_gradients(model, padded(batch), weights)
    total = dict.fromkeys(gradients, 0.0)
    for row in range(len(lengths)):
        loss, single = loss_and_gradients(model, part(batch, row), weights[row : row + 1])
        assert loss[0] == pytest.approx(losses[row], rel=1e-5)
        total = {name: total[name] + single[name] for name in total}
    for name in total:
        room = 1e-5 + 2e-6 * np.abs(total[name]).max()  # float32, where large terms cancel
        np.testing.assert_allclose(gradients[name], total[name], 1e-5, room, err_msg=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_by_enumeration(family, generator):
    batch, model = random_batch(generator, [3, 1, 2], family), tiny(family)
    for parameter in model.slot.collect_params().values():
        parameter.set_data(mx.nd.array(generator.normal(size=parameter.shape)))
    emissions, scores = (out.asnumpy().astype(np.float64) for out in model(batch))
    for row, loss in enumerate(model.loss(batch).asnumpy()):
        tags = slice(0, batch.lengths[row])
        slots = enumerated_loss(
            emissions[row, tags], batch.slots[row, tags], model.slot.crf.chain()
        )
        intent = np.log(np.exp(scores[row]).sum()) - scores[row, batch.intents[row]]
        assert loss == pytest.approx(slots[0] + intent, rel=1e-5)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("clc", {"intent_pooling": "mean", "num_layers": 1}),
        ("clc", {"intent_pooling": "max", "num_layers": 1}),
        ("bert", {}),
    ],
)
def test_gradients_by_finite_differences(family, config):
    rng = np.random.default_rng(1)
    batch, model = random_batch(rng, [3, 1, 2], family), tiny(family, **config)
    parameters = model.collect_params()
    for parameter in parameters.values():  # away from kinks and from zero gradients
        parameter.set_data(parameter.data() + mx.nd.array(rng.normal(0, 0.3, parameter.shape)))
    weights = rng.normal(size=3)
    _, gradients = loss_and_gradients(model, batch, weights)
    for name, parameter in parameters.items():
        direction = rng.normal(size=parameter.shape)
        direction /= np.linalg.norm(direction)
        change = central_difference(
            parameter,
            4e-3 * direction,
            lambda: weights @ model.loss(batch).asnumpy().astype(np.float64),
        )
        slope = change / 8e-3
        assert (gradients[name] * direction).sum() == pytest.approx(slope, abs=4e-3, rel=1e-2), name
        assert gradients[name].any(), name


def test_names_and_types():
    """By which the files of weights know them."""
    parameters = tiny_model().collect_params()
    lstm = {
        f"clc_lstm_{direction}{layer}_l0_{side}2h_{kind}"
        for direction in ("forward", "backward")
        for layer in (0, 1)
        for side in "ih"
        for kind in ("weight", "bias")
    }
    layers = ("clc_characters_convolution", "intent_dense", "slot_dense")
    wanted = {f"{layer}_{kind}" for layer in layers for kind in ("weight", "bias")}
    wanted |= {"clc_words_weight", "clc_characters_embedding_weight"}
    wanted |= {f"slot_crf_{scores}" for scores in ("transitions", "start", "end")}
    assert set(parameters) == wanted | lstm
    assert list(parameters) == list(tiny_model().collect_params())
    assert {np.dtype(parameter.dtype) for parameter in parameters.values()} == {np.dtype("float32")}


def train(model, batches):
    """Adam over some batches; the losses, and the final weights by name."""
    parameters = model.collect_params()
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 0.02}, kvstore=None)
    mx.random.seed(5)
    losses = []
    for batch in batches:
        with autograd.record():
            loss = model.loss(batch)
        loss.backward()
        trainer.step(len(batch.lengths))
        losses.append(loss.asnumpy())
    return losses, {name: p.data().asnumpy().copy() for name, p in parameters.items()}


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("clc", {"intent_pooling": "mean"}),
        ("clc", {"intent_pooling": "max", "is_embedding_trainable": False}),
        ("bert", {}),
        ("bert", {"is_embedding_trainable": False, "frozen_layers": 1}),
    ],
)
def test_same_bits_hybridized_or_not(family, settings):
    """Over batches of varying shape, with dropout."""
    rng = np.random.default_rng(3)
    batches = [random_batch(rng, rng.integers(1, 7, rng.integers(1, 5)), family) for _ in range(6)]
    results = []
    for is_hybrid in (False, True):
        model = tiny(family, dropout=0.3, **settings)
        model.hybridize(is_hybrid, static_alloc=is_hybrid)
        results.append(train(model, batches))
    (losses, weights), (other_losses, other_weights) = results
    for mine, theirs in zip(losses, other_losses):
        np.testing.assert_array_equal(mine, theirs)
    for name, values in weights.items():
        np.testing.assert_array_equal(values, other_weights[name], err_msg=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_losses_before_one_backward(family):
    """Chunks of a micro-batch, and a prediction between forward and backward."""
    rng = np.random.default_rng(5)
    model, whole = tiny(family), random_batch(rng, [4, 3, 4, 2], family)
    _, expected = loss_and_gradients(model, whole)
    with autograd.record():
        losses = [model.loss(part(whole, rows)) for rows in ([0, 1], [2, 3])]
        total = losses[0].sum() + losses[1].sum()
    predictions_of(model, whole)
    total.backward()
    for name, gradient in expected.items():
        found = model.collect_params()[name].grad().asnumpy()
        np.testing.assert_allclose(found, gradient, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions(family):
    rng = np.random.default_rng(7)
    batch, model = random_batch(rng, [4, 1, 3], family), tiny(family, dropout=0.5)
    for parameter in model.slot.crf.collect_params().values():
        parameter.set_data(mx.nd.array(rng.normal(size=parameter.shape)))
    found = predictions_of(model, batch)
    emissions, scores = (out.asnumpy().astype(np.float64) for out in model(batch))
    for row, length in enumerate(batch.lengths):
        paths, totals = enumerate_paths(emissions[row, :length], model.slot.crf.chain())
        assert tuple(found.slots[row]) == paths[totals.argmax()]
        assert found.slot_confidences[row].shape == (length,)
    assert (found.intents == scores.argmax(1)).all()
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found.intent_probabilities, expected, rtol=1e-6)
    with autograd.record():
        again = predictions_of(model, batch)
        assert autograd.is_recording()
    assert (again.intent_probabilities == found.intent_probabilities).all(), "no dropout"


@pytest.mark.parametrize("family", FAMILIES)
def test_finite_with_exploded_weights(family):
    model, batch = tiny(family), random_batch(np.random.default_rng(8), [4, 1, 3], family)
    rng = np.random.default_rng(9)
    for parameter in model.collect_params().values():
        parameter.set_data(mx.nd.array(rng.normal(0, 1e5, parameter.shape)))
    losses, gradients = loss_and_gradients(model, batch)
    assert np.isfinite(losses).all()
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())
    assert np.isfinite(predictions_of(model, batch).intent_probabilities).all()


def test_word_vectors():
    vectors = np.random.default_rng(10).normal(size=(SIZES["num_words"], 7))
    model = tiny_model(word_vectors=vectors, is_embedding_trainable=False)
    np.testing.assert_allclose(model.encoder.words.weight.data().asnumpy(), vectors, rtol=1e-6)
    _, gradients = loss_and_gradients(model, random_batch(np.random.default_rng(11), [2]))
    assert "clc_words_weight" not in gradients
    one_sentence("word vectors.*11 words", tiny_model, word_vectors=vectors[1:])


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_of_batches_under_way_are_those_of_each_alone(family):
    """To the last bit, over batches of varying shape; also when the caller is slow."""
    rng, model = np.random.default_rng(12), tiny(family, dropout=0.5)
    batches = [random_batch(rng, rng.integers(1, 7, rng.integers(1, 5)), family) for _ in range(7)]
    alone = [[out.asnumpy() for out in model(batch)] for batch in batches]
    found = list(model.outputs(batches))
    assert [outputs.batch for outputs in found] == batches
    for (emissions, intent_scores), outputs in zip(alone, found):
        np.testing.assert_array_equal(outputs.emissions, emissions)
        np.testing.assert_array_equal(outputs.label_scores, intent_scores)
    assert list(model.outputs([])) == []
