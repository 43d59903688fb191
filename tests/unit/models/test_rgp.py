"""Carriers of gradients: no change of the output, orthonormal, and the gradient made of theirs."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd
from support.models import loss_and_gradients, predictions_of, random_batch, tiny_bert

from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import bert_tensors
from edp_mx.models.clc import CLCConfig
from edp_mx.models.rgp import RGP, CarriedWeight, carried_weights
from edp_mx.runtime.settings import SettingError

LENGTHS = [3, 1, 5]
PLACES = ("query", "key", "value", "proj", "ffn_1", "ffn_2")


def carried_bert(**config):
    """A BERT with carriers of rank 2."""
    return tiny_bert(trained="rgp", **{"rgp_rank": 2, **config})


def full_gradients(batch):
    """The gradients of all parameters of the same model without carriers."""
    return loss_and_gradients(tiny_bert(), batch)[1]


def matrices(weight: CarriedWeight):
    """L (p, r) and R (r, d)."""
    return [carrier.data().asnumpy().astype(np.float64) for carrier in weight.carriers]


def test_the_model_is_the_one_without_carriers(generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model, plain = carried_bert(), tiny_bert()
    carried_weights(model.encoder)
    assert set(plain.collect_params()) < set(model.collect_params())
    losses, _ = loss_and_gradients(model, batch)
    np.testing.assert_array_equal(losses, loss_and_gradients(plain, batch)[0])
    found, expected = bert_tensors(model.encoder.bert), bert_tensors(plain.encoder.bert)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("frozen_layers", [0, 1, 2])
def test_carriers_of_the_upper_layers_and_heads_have_gradients(frozen_layers, generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model = carried_bert(frozen_layers=frozen_layers)
    names = {weight.updated.name for weight in carried_weights(model.encoder)}
    assert len(names) == len(PLACES) * (2 - frozen_layers) + 1
    for place in PLACES:
        assert sum(f"{place}_weight" in name for name in names) == 2 - frozen_layers
    _, gradients = loss_and_gradients(model, batch)
    assert {name for name in gradients if name.startswith("bert_")} == {
        f"{name[: -len('weight')]}rgp_{side}_weight" for name in names for side in ("down", "up")
    }
    assert all(np.abs(gradients[name]).max() > 1e-9 for name in gradients if RGP().trains(name))


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_gradient_is_the_projection_of_the_whole_one(rank, generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model, whole = carried_bert(rgp_rank=rank), full_gradients(batch)
    weights = carried_weights(model.encoder)
    _, gradients = loss_and_gradients(model, batch)
    for name, gradient in gradients.items():
        if not RGP().trains(name):  # what is below the weights has its gradient through them
            np.testing.assert_allclose(gradient, whole[name], atol=1e-6, err_msg=name)
    for weight in weights:
        left, right = matrices(weight)
        gradient = whole[weight.updated.name].astype(np.float64)  # (p, d)
        outside = np.eye(len(left)) - left @ left.T
        expected = outside @ gradient @ right.T @ right + left @ left.T @ gradient
        weight.reconstruct()
        found = weight.updated.grad().asnumpy()
        np.testing.assert_allclose(found, expected, atol=1e-6 + 1e-5 * np.abs(gradient).max())
        if rank == 8 and min(gradient.shape) == 8:
            np.testing.assert_allclose(found, gradient, atol=1e-5 * np.abs(gradient).max())


def of_low_rank(generator, shape, rank):
    """A matrix of some rank, whose singular values are far apart."""
    left = np.linalg.qr(generator.normal(size=(shape[0], rank)))[0]
    right = np.linalg.qr(generator.normal(size=(shape[1], rank)))[0]
    return left * 10.0 ** -np.arange(rank) @ right.T


def test_carriers_are_orthonormal_and_span_how_far_the_weights_have_moved(generator):
    model = carried_bert()
    for weight in carried_weights(model.encoder):
        parameter = model.encoder.collect_params()[weight.updated.name]
        start = parameter.data().asnumpy()
        moved = of_low_rank(generator, start.shape, 2)
        parameter.set_data(mx.nd.array(start + moved))
        weight.refresh(step=1)
        left, right = matrices(weight)
        np.testing.assert_allclose(left.T @ left, np.eye(2), atol=1e-6)
        np.testing.assert_allclose(right @ right.T, np.eye(2), atol=1e-6)
        np.testing.assert_allclose(left @ left.T @ moved @ right.T @ right, moved, atol=1e-5)


def test_the_first_carriers_span_the_largest_part_of_the_weights():
    model = carried_bert(rgp_rank=8)
    for weight in carried_weights(model.encoder):
        left, right = matrices(weight)
        values = weight.updated.data().asnumpy()
        np.testing.assert_allclose(left @ left.T @ values @ right.T @ right, values, atol=1e-5)


def test_another_step_and_seed_give_other_carriers_and_the_same_the_same(generator):
    model = carried_bert(rgp_rank=1)
    (first, *_), (same, *_), (other, *_) = (
        carried_weights(model.encoder, seed=seed) for seed in (0, 0, 1)
    )
    parameter = model.encoder.collect_params()[first.updated.name]
    parameter.set_data(mx.nd.array(generator.normal(size=parameter.shape)))  # they have moved
    found = []
    for weight, step in ((first, 3), (same, 3), (first, 4), (other, 3)):
        weight.refresh(step=step)
        found.append(np.abs(matrices(weight)[0]))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-3 < np.abs(found[0] - found[3]).max()


def test_what_is_updated_is_the_weight_itself_and_no_backward_pass_reaches_it(generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model = carried_bert()
    weight = carried_weights(model.encoder)[0]
    parameter = model.encoder.collect_params()[weight.updated.name]
    weight.updated.grad()[:] = 7
    with autograd.record():
        loss = model.loss(batch)
    loss.backward()
    assert (weight.updated.grad().asnumpy() == 7).all()
    assert not weight.updated.data()._fresh_grad
    weight.updated.data()[:] = 5
    assert (parameter.data().asnumpy() == 5).all()
    parameter.set_data(mx.nd.ones(parameter.shape))
    assert (weight.updated.data().asnumpy() == 1).all()


def test_carriers_are_replaced_after_a_prediction_too(generator):
    """OneDNN may keep weights of such sizes in an order of its own from then on."""
    batch = random_batch(generator, LENGTHS, "bert")
    model = carried_bert(hidden_size=32, intermediate_size=48, rgp_rank=16)
    weights = carried_weights(model.encoder)
    for step in range(2):
        expected = [weight.updated.data().asnumpy() for weight in weights]
        predictions_of(model, batch)
        for weight, values in zip(weights, expected):
            np.testing.assert_array_equal(weight.updated.data().asnumpy(), values)
            weight.refresh(step=step)
            left, right = matrices(weight)
            np.testing.assert_allclose(left.T @ left, np.eye(16), atol=1e-6)
            np.testing.assert_allclose(right @ right.T, np.eye(16), atol=1e-6)
        loss_and_gradients(model, batch)


def test_impossible_settings_are_refused_by_name():
    with pytest.raises(SettingError, match="trained must be one of .*, not 'rgp'"):
        CLCConfig(trained="rgp")
    with pytest.raises(SettingError, match="rgp_rank must be at most 6"):
        BERTConfig(num_heads=2, hidden_size=8, intermediate_size=6, trained="rgp", rgp_rank=7)
