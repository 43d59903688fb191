"""Biases that are trained alone have the gradients that they have when all is trained."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import loss_and_gradients, random_batch, tiny_bert


@pytest.mark.parametrize("operators", ["ours", "MXNet's"])
def test_gradients_are_those_of_training_all(operators, generator, monkeypatch):
    if operators != "ours":
        monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    batch = random_batch(generator, [5, 1, 3, 7], "bert")
    losses, whole = loss_and_gradients(tiny_bert(), batch)
    found_losses, found = loss_and_gradients(tiny_bert(trained="biases"), batch)
    np.testing.assert_allclose(found_losses, losses, rtol=1e-5)
    heads = [name for name in whole if not name.startswith("bert_")]
    assert set(found) == {*heads, *(n for n in whole if n.endswith(("bias", "beta")))}
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, whole[name], atol=1e-5, err_msg=name)
    assert np.abs(found["bert_pooler_bias"]).max() > 1e-3
