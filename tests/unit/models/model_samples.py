"""Small models and batches for the tests of this folder."""

from __future__ import annotations

from collections import namedtuple

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.models.clc import CLCConfig
from edp_mx.models.intent_slot import build_model

Batch = namedtuple("Batch", "words characters lengths slots intents")
SIZES = {"num_words": 11, "num_characters": 9, "num_slots": 5, "num_intents": 3}
TINY = {"character_dimension": 4, "character_filters": 3, "hidden_size": 6, "dropout": 0.0}


def tiny_model(*, seed=3, is_embedding_trainable=True, word_vectors=None, **config):
    """A CLC small enough for finite differences."""
    return build_model(
        CLCConfig(**{**TINY, **config}),
        **SIZES,
        seed=seed,
        context=mx.cpu(),
        word_dimension=5,
        word_vectors=word_vectors,
        is_embedding_trainable=is_embedding_trainable,
    )


def random_batch(rng, lengths, num_characters=4):
    """Random ids, padded with 0, that fit `SIZES`."""
    lengths = np.asarray(lengths)
    shape = (len(lengths), int(lengths.max()))
    mask = np.arange(shape[1]) < lengths[:, None]
    spelled = np.arange(num_characters) < rng.integers(1, num_characters + 1, (*shape, 1))
    characters = rng.integers(1, SIZES["num_characters"], (*shape, num_characters))
    return Batch(
        words=(rng.integers(1, SIZES["num_words"], shape) * mask).astype(np.int32),
        characters=(characters * spelled * mask[:, :, None]).astype(np.int32),
        lengths=lengths,
        slots=(rng.integers(0, SIZES["num_slots"], shape) * mask).astype(np.int32),
        intents=rng.integers(0, SIZES["num_intents"], len(lengths)).astype(np.int32),
    )


def padded(batch, tokens=2, characters=3):
    """The same utterances with more padding."""
    more = ((0, 0), (0, tokens))
    return batch._replace(
        words=np.pad(batch.words, more),
        characters=np.pad(batch.characters, (*more, (0, characters))),
        slots=np.pad(batch.slots, more),
    )


def part(batch, rows):
    """Some of a batch's utterances, without the padding that they no longer need."""
    rows = np.atleast_1d(rows)
    tokens = int(batch.lengths[rows].max())
    picked = Batch(*(field[rows] for field in batch))
    return picked._replace(
        words=picked.words[:, :tokens],
        characters=picked.characters[:, :tokens],
        slots=picked.slots[:, :tokens],
    )


def loss_and_gradients(model, batch, weights=None):
    """Loss (N,) and the gradient of its weighted sum by every trainable parameter."""
    with autograd.record():
        loss = model.loss(batch)
    loss.backward(mx.nd.array(np.ones(len(batch.lengths)) if weights is None else weights))
    gradients = {
        name: parameter.grad().asnumpy().copy()
        for name, parameter in model.collect_params().items()
        if parameter.grad_req != "null"
    }
    return loss.asnumpy(), gradients
