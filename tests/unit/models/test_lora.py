"""Low-rank adapters: the same model at the start, what is trained, and what merging gives."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from support.models import loss_and_gradients, outputs, random_batch, tiny_adapted_bert, tiny_bert

from edp_mx.models import lora
from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import bert_tensors
from edp_mx.models.checkpoints.names import parameters_of
from edp_mx.models.clc import CLCConfig
from edp_mx.runtime.settings import SettingError

LENGTHS = [3, 1, 5]
PLACES = ("query", "key", "value", "proj", "ffn_1", "ffn_2")


def test_the_model_starts_as_the_frozen_one(generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model, plain = tiny_adapted_bert(is_drawn=False), tiny_bert()
    assert set(plain.collect_params()) < set(model.collect_params())
    for found, expected in zip(outputs(model, batch), outputs(plain, batch)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("frozen_layers", [0, 1, 2])
def test_adapters_of_the_upper_layers_and_heads_are_trained(frozen_layers, generator):
    model = tiny_adapted_bert(frozen_layers=frozen_layers)
    batch = random_batch(generator, LENGTHS, "bert")
    _, gradients = loss_and_gradients(model, batch)
    expected = {f"bert_pooler_lora_{side}_weight" for side in ("down", "up")}
    for name in model.collect_params():
        layer = [i for i in range(frozen_layers, 2) if f"transformer{i}_" in name]
        if not name.startswith("bert_") or (layer and lora.LoRA().trains(name)):
            expected.add(name)
    assert set(gradients) == expected
    found = {name for name in gradients if lora.LoRA().trains(name)}
    assert len(found) == 2 * (len(PLACES) * (2 - frozen_layers) + 1)
    for place in PLACES:
        assert sum(f"{place}_lora" in name for name in found) == 2 * (2 - frozen_layers)
    assert all(np.abs(gradients[name]).max() > 1e-9 for name in found)


@pytest.mark.parametrize("alpha", [None, 3.0])
def test_merged_weights_give_the_same_outputs(alpha, generator):
    batch = random_batch(generator, LENGTHS, "bert")
    model, plain = tiny_adapted_bert(lora_alpha=alpha), tiny_bert()
    start, expected = outputs(plain, batch), outputs(model, batch)
    tensors = bert_tensors(model.encoder.bert)
    for name, parameter in parameters_of(plain.encoder.bert).items():
        parameter.set_data(mx.nd.array(tensors[name]))
    for found, wanted, before in zip(outputs(plain, batch), expected, start):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        assert np.abs(before - wanted).max() > 0.1


def test_a_merged_weight_by_hand():
    weights = {
        "a_weight": np.float32([[1, 2], [3, 4]]),
        "a_lora_down_weight": np.float32([[1, -1]]),
        "a_lora_up_weight": np.float32([[2], [0]]),
        "b_bias": np.float32([7]),
    }
    plain = lora.merged(weights, scale=0.5)
    assert set(plain) == {"a_weight", "b_bias"}
    np.testing.assert_array_equal(plain["a_weight"], [[2, 1], [3, 4]])
    assert weights["a_weight"][0, 0] == 1


def test_our_operators_and_mxnet_s_give_the_same(generator, monkeypatch):
    batch, ours = random_batch(generator, LENGTHS, "bert"), tiny_adapted_bert()
    monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    theirs = tiny_adapted_bert()
    (losses, gradients), (expected_losses, expected) = (
        loss_and_gradients(model, batch) for model in (ours, theirs)
    )
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], atol=1e-5, err_msg=name)


def test_impossible_settings_are_refused_by_name():
    with pytest.raises(SettingError, match="trained must be one of .*, not 'lora'"):
        CLCConfig(trained="lora")
    with pytest.raises(SettingError, match="lora_rank must be at most 8"):
        BERTConfig(num_heads=2, hidden_size=8, trained="lora", lora_rank=9)
    with pytest.raises(SettingError, match="lora_alpha must be above 0"):
        BERTConfig(lora_alpha=0.0)
