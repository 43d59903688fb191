"""Ids that MXNet would clip without a word."""

from dataclasses import replace

import numpy as np
import pytest
from support.models import random_batch, tiny, tiny_model

from edp_mx.errors import UserError


@pytest.mark.parametrize(
    ("family", "field", "value", "told"),
    [
        ("clc", "words", 11, "words: id 11"),
        ("clc", "words", -1, "words: id -1"),
        ("clc", "characters", 9, "characters: id 9"),
        ("clc", "lengths", 0, "lengths"),
        ("clc", "lengths", 5, "lengths"),
        ("clc", "slots", 5, "slots: id 5"),
        ("clc", "intents", 3, "intents: id 3"),
        ("bert", "pieces", 12, "pieces: id 12"),
        ("bert", "lengths", 40, "lengths"),
        ("bert", "firsts", 40, "first pieces: id 40"),
    ],
)
def test_a_model_refuses_ids_that_it_does_not_know(family, field, value, told):
    batch = random_batch(np.random.default_rng(0), [4, 2], family)
    of_inputs = hasattr(batch.inputs, field)
    changed = with_first(batch.inputs if of_inputs else batch, field, value)
    with pytest.raises(UserError, match=told):
        tiny(family).loss(replace(batch, inputs=changed) if of_inputs else changed)


def test_a_bert_refuses_more_pieces_than_positions():
    batch = random_batch(np.random.default_rng(0), [4, 2], "bert")
    with pytest.raises(UserError, match="model.max_positions is 3; lower data.max_pieces"):
        tiny("bert", max_positions=3).loss(batch)


def with_first(record, field, value):
    """The same with the first entry of one array changed."""
    array = getattr(record, field).copy()
    array[(0,) * array.ndim] = value
    change = {field: array}
    return record._replace(**change) if hasattr(record, "_replace") else replace(record, **change)


def test_labels_at_padding_and_unknown_labels_do_not_matter_to_predict():
    batch, model = random_batch(np.random.default_rng(1), [4, 2]), tiny_model()
    slots = batch.slots.copy()
    slots[1, 2:] = -100
    assert (model.loss(batch).asnumpy() == model.loss(replace(batch, slots=slots)).asnumpy()).all()
    model.predict(replace(batch, slots=slots + 99, intents=batch.intents + 99))
