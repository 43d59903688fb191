"""Ids that MXNet would clip without a word."""

from __future__ import annotations

import numpy as np
import pytest
from model_samples import random_batch, tiny_model

from edp_mx.errors import UserError
from edp_mx.models.id_ranges import check_ids, check_lengths


def test_bounds_are_exact():
    check_ids("words", np.array([0, 4]), 5)
    check_lengths(np.array([1, 3]), 3)
    for ids in ([5], [-1]):
        with pytest.raises(UserError, match=f"words: id {ids[0]}, but the model knows 0 … 4"):
            check_ids("words", np.array(ids), 5)
    for lengths in ([0, 3], [4, 3]):
        with pytest.raises(UserError, match="lengths"):
            check_lengths(np.array(lengths), 3)


@pytest.mark.parametrize(
    ("field", "value"),
    [("words", 11), ("words", -1), ("characters", 9), ("lengths", 0), ("lengths", 5)]
    + [("slots", 5), ("slots", -1), ("intents", 3)],
)
def test_a_model_refuses_ids_that_it_does_not_know(field, value):
    batch = random_batch(np.random.default_rng(0), [4, 2])
    array = getattr(batch, field).copy()
    array[(0,) * array.ndim] = value
    with pytest.raises(UserError, match=field):
        tiny_model().loss(batch._replace(**{field: array}))


def test_labels_at_padding_and_unknown_labels_do_not_matter_to_predict():
    batch, model = random_batch(np.random.default_rng(1), [4, 2]), tiny_model()
    slots = batch.slots.copy()
    slots[1, 2:] = -100
    assert (model.loss(batch).asnumpy() == model.loss(batch._replace(slots=slots)).asnumpy()).all()
    model.predict(batch._replace(slots=slots + 99, intents=batch.intents + 99))
