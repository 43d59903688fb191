"""GPT-2 as an encoder: which states stand for tokens and utterances, and what a piece sees."""

import mxnet as mx
import numpy as np
import pytest
from support.models import random_batch, tiny_gpt2
from support.refusals import one_sentence

from edp_mx.models.gpt2.config import GPT2Config

LENGTHS = [5, 1, 3, 7]


def states_of(model, batch):
    """All states (N, P, H), those of tokens (N, T, H), and the utterances' vectors (N, H)."""
    encoder = model.encoder
    inputs = encoder.inputs(batch, mx.cpu())
    tokens, pooled = encoder(*inputs)
    return [each.asnumpy() for each in (encoder.decoder(inputs[0]), tokens, pooled)]


def test_a_token_is_read_at_its_last_piece_and_an_utterance_at_its_end(generator):
    batch = random_batch(generator, LENGTHS, "gpt2")
    states, tokens, pooled = states_of(tiny_gpt2(), batch)
    _, lengths, firsts = batch.inputs
    for row, length in enumerate(LENGTHS):
        ends = [*firsts[row, 1:length], lengths[row] - 1]  # where the next token or [SEP] begins
        for token, end in enumerate(ends):
            np.testing.assert_array_equal(tokens[row, token], states[row, end - 1])
        np.testing.assert_array_equal(pooled[row], states[row, lengths[row] - 1])


def test_a_piece_sees_only_what_stands_before_it(generator):
    batch = random_batch(generator, [6], "gpt2")
    model = tiny_gpt2()
    before, _, _ = states_of(model, batch)
    pieces = batch.inputs.pieces
    for place in (1, 3, pieces.shape[1] - 1):
        changed = pieces.copy()
        changed[0, place] = changed[0, place] % 8 + 3
        after = model.encoder.decoder(mx.nd.array(changed, dtype="int32")).asnumpy()
        np.testing.assert_array_equal(after[0, :place], before[0, :place])
        assert (np.abs(after[0, place:] - before[0, place:]).max(axis=1) > 1e-6).all()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"hidden_size": 10, "num_heads": 4}, "hidden_size must be a multiple of the 4 heads"),
        ({"frozen_layers": 13}, "frozen_layers must be at most 12"),
        ({"checkpoint": "a", "start_from": "b"}, "start_from excludes checkpoint"),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused(settings, told):
    one_sentence(told, GPT2Config, **settings)
