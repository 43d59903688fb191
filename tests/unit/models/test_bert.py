"""The BERT encoder and its settings. That it is BERT, `test_huggingface.py` shows."""

from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
from support.models import loss_and_gradients, outputs, random_batch, tiny_bert
from support.refusals import one_sentence

from edp_mx.dp.privacy.layers import layers_of
from edp_mx.models.bert import BERTConfig
from edp_mx.models.bert_encoder import BERTEncoder


def test_the_paper_s_size():
    """4 layers, 312 wide, 30,522 pieces: TinyBERT's 14,350,248 parameters."""
    encoder = BERTEncoder(BERTConfig(), num_pieces=30_522, prefix="bert_")
    sizes = [np.prod(p.shape) for p in encoder.collect_params().values()]
    assert sum(sizes) == 14_350_248


def test_a_token_is_its_first_piece_and_the_utterance_its_cls():
    batch, model = random_batch(np.random.default_rng(0), [4, 1, 3], "bert"), tiny_bert()
    pieces, lengths, firsts = batch.inputs
    states, pooled = outputs(model, batch)
    arrays = mx.nd.array(pieces, dtype="int32"), mx.nd.array(lengths)
    sequence, expected_pooled = (out.asnumpy() for out in model.encoder.bert(*arrays))
    for row, length in enumerate(batch.lengths):
        for token in range(length):
            np.testing.assert_array_equal(states[row, token], sequence[row, firsts[row, token]])
    np.testing.assert_array_equal(pooled, expected_pooled)


@pytest.mark.parametrize(
    ("features", "means_at"),
    [("mean", {0: 2}), ("all_layers", {2: 0, 3: 1}), ("all_means", {0: 2, 2: 0, 3: 1})],
)
def test_the_layers_that_the_heads_read(features, means_at):
    """Against the states of each layer, caught on the way through the network."""
    batch = random_batch(np.random.default_rng(0), [4, 1, 3], "bert")
    model = tiny_bert(num_layers=3, trained="heads", features=features, token_layer=2)
    model.hybridize(False)  # hooks then see arrays
    layers = []
    for cell in model.encoder.bert.model.encoder.transformer_cells:
        cell.register_forward_hook(lambda _, __, out: layers.append(out[0].asnumpy()))
    states, pooled = outputs(model, batch)
    _, lengths, firsts = batch.inputs
    for row, length in enumerate(batch.lengths):
        for token in range(length):
            np.testing.assert_array_equal(states[row, token], layers[1][firsts[row, token], row])
        means = [layer[: int(lengths[row]), row].mean(axis=0) for layer in layers]  # (H,) each
        found = pooled[row].reshape(model.encoder.num_pooled, -1)
        wanted = [means[layer] for layer in means_at.values()]
        np.testing.assert_allclose(found[list(means_at)], wanted, rtol=1e-5, atol=1e-6)
        assert len(found) == (1 if features == "mean" else 4)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"features": "all_layers"}, "features must not be all_layers unless trained is heads"),
        ({"features": "all_means"}, "features must not be all_means unless trained is heads"),
        ({"token_layer": 2}, "token_layer must be left out unless trained is heads"),
        ({"token_layer": 5, "trained": "heads"}, "token_layer must be at most 4"),
        ({"features": "mean", "trained": "heads", "intents": "infilling"}, "must not be mean"),
        ({"features": "all_means", "trained": "heads", "intents": "infilling"}, "be all_means"),
    ],
)
def test_layers_that_cannot_be_read_are_refused(settings, told):
    one_sentence(told, BERTConfig, **settings)


def test_every_piece_matters_to_its_own_utterance():
    rng = np.random.default_rng(1)
    batch, model = random_batch(rng, [4, 1, 3], "bert"), tiny_bert()
    for parameter in model.collect_params().values():  # the first values are too small to tell
        parameter.set_data(parameter.data() + mx.nd.array(rng.normal(0, 0.3, parameter.shape)))
    _, pooled = outputs(model, batch)
    for place in range(batch.inputs.lengths[0]):
        changed = batch.inputs.pieces.copy()
        changed[0, place] = changed[0, place] % 11 + 1
        other = outputs(model, replace(batch, inputs=batch.inputs._replace(pieces=changed)))
        assert np.abs(other[1][0] - pooled[0]).max() > 1e-5, place
        np.testing.assert_array_equal(other[1][1:], pooled[1:])


def test_first_values_are_a_cut_normal_and_the_same_in_every_process():
    parameters = tiny_bert(hidden_size=64, num_heads=2).encoder.collect_params()
    again = tiny_bert(hidden_size=64, num_heads=2).encoder.collect_params()
    for name, parameter in parameters.items():
        values = parameter.data().asnumpy()
        assert (values == again[name].data().asnumpy()).all()
        if name.endswith("gamma"):
            assert (values == 1).all()
        elif name.endswith(("bias", "beta")):
            assert (values == 0).all()
        else:
            assert np.abs(values).max() <= 0.04
    weight = parameters["bert_encoder_transformer0_positionwiseffn0_ffn_1_weight"].data().asnumpy()
    assert abs(weight.mean()) < 3e-3 and weight.std() == pytest.approx(0.02 * 0.8796, rel=0.1)


def test_frozen_parameters_have_neither_gradient_nor_layer():
    batch = random_batch(np.random.default_rng(4), [3, 2], "bert")
    whole, half = tiny_bert(), tiny_bert(is_embedding_trainable=False, frozen_layers=1)
    _, expected = loss_and_gradients(whole, batch)
    _, gradients = loss_and_gradients(half, batch)
    frozen = set(expected) - set(gradients)
    assert {name.split("_")[1] for name in frozen} == {"word", "token", "encoder"}
    assert not any("transformer1" in name for name in frozen)
    assert all("transformer0" in n or "transformer" not in n for n in frozen)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], atol=1e-6, err_msg=name)
    layered = {p.name for layer in layers_of(half) for p in layer.parameters}
    assert layered == set(gradients)
