"""Ghost clipping of a BERT of which only a part is trained, against the loop."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import part, random_batch, tiny_adapted_bert, tiny_bert
from support.prescribed import taken
from support.releases import release_with

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.norm_clipping import LoopClipping

LENGTHS = [5, 1, 3, 7]


MODELS = {
    "adapters": tiny_adapted_bert,
    "adapters at the start": lambda: tiny_adapted_bert(is_drawn=False),
    "adapters, scaled, above layer 1": lambda: tiny_adapted_bert(lora_alpha=5.0, frozen_layers=1),
    "prefixes": lambda: tiny_bert(trained="prefix", prefix_length=3),
    "prefix of layer 1": lambda: tiny_bert(trained="prefix", prefix_length=1, frozen_layers=1),
    "carriers": lambda: tiny_bert(trained="rgp", rgp_rank=2),
    "carriers above layer 1": lambda: tiny_bert(trained="rgp", rgp_rank=3, frozen_layers=1),
    "biases": lambda: tiny_bert(trained="biases"),
    "infilling": lambda: tiny_bert(intents="infilling"),
    "infilling, heads": lambda: tiny_bert(intents="infilling", trained="heads"),
    "infilling, biases": lambda: tiny_bert(intents="infilling", trained="biases"),
    "infilling, adapters": lambda: tiny_adapted_bert(intents="infilling"),
    "infilling, carriers": lambda: tiny_bert(intents="infilling", trained="rgp"),
    "infilling, prefixes": lambda: tiny_bert(intents="infilling", trained="prefix"),
}


@pytest.mark.parametrize("operators", ["ours", "MXNet's"])
@pytest.mark.parametrize("kind", MODELS)
def test_the_clipped_sum_is_the_loop_s(kind, operators, generator, monkeypatch):
    if operators != "ours":
        monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    model = MODELS[kind]()
    batch = random_batch(generator, LENGTHS, "bert")
    flat = FlatGradients(layers_of(model))
    scales = np.linspace(1.0, 0.5, len(flat.layers))
    alone = [lambda row=row: model.loss(part(batch, row)) for row in range(len(LENGTHS))]
    for max_grad_norm in (0.7, 1e9):
        release = release_with(max_grad_norm=max_grad_norm, layer_scales=scales)
        common = {"flat": flat, "release": release}
        ghost = GhostClipping(network=model, chunk_size=64, **common)
        expected = taken(LoopClipping(**common).clip(alone))
        found = taken(ghost.clip([lambda: model.loss(batch)]))
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=f"{max_grad_norm}"
        )
        refuse_wrong(ghost, together=[lambda: model.loss(batch)], alone=alone)


@pytest.mark.parametrize("trained", ["lora", "rgp"])
def test_both_matrices_of_an_adapter_are_one_layer(trained):
    layers = layers_of(tiny_bert(trained=trained))
    adapters = [layer for layer in layers if trained in layer.name]
    assert len(adapters) == 2 * 6 + 1
    assert all(len(layer.parameters) == 2 for layer in adapters)
