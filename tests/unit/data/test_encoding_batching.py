"""Encoding and batching against a loop over tokens and characters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.utterances import drawn_corpora, say

from edp_mx.data.encoding import encode, evaluation_batches
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

utterances = drawn_corpora(st.text("abAB", min_size=1, max_size=5), max_size=12)


@given(utterances, st.integers(1, 8), st.integers(1, 6), st.data())
def test_batch_equals_a_loop(corpus, max_tokens, max_characters, data):
    known = corpus[: data.draw(st.integers(1, len(corpus)))]
    vocabulary = Vocabulary.build(known)
    encoded = encode(corpus, vocabulary, max_tokens=max_tokens, max_characters=max_characters)
    indices = data.draw(st.lists(st.integers(0, len(corpus) - 1), min_size=1, max_size=6))
    batch = encoded.batch(indices)
    assert batch.indices.tolist() == indices and len(batch) == len(indices)
    arrays = (*batch.inputs, batch.lengths, batch.slots, batch.intents)
    assert {array.dtype for array in arrays} == {np.dtype("int32")}
    assert batch.indices.dtype == np.int64
    longest = max(min(len(corpus[i].tokens), max_tokens) for i in indices)
    assert batch.inputs.words.shape == batch.slots.shape == (len(indices), longest)
    for row, index in enumerate(indices):
        expected = corpus[index]
        tokens = expected.tokens[:max_tokens]
        assert batch.lengths[row] == len(tokens) == encoded.lengths[index]
        tags = [vocabulary.slot_id(tag) for tag in expected.slots[:max_tokens]]
        intent = vocabulary.intent_id(expected.intent)
        assert batch.intents[row] == max(intent, 0)
        for t in range(longest):
            if t >= len(tokens):
                assert batch.inputs.words[row, t] == batch.slots[row, t] == 0
                assert not batch.inputs.characters[row, t].any() and not batch.mask[row, t]
                continue
            ids = vocabulary.character_ids(tokens[t][:max_characters])
            assert batch.mask[row, t]
            assert batch.inputs.words[row, t] == vocabulary.word_id(tokens[t])
            assert batch.slots[row, t] == max(tags[t], 0)
            found = batch.inputs.characters[row, t].tolist()
            assert found[: len(ids)] == ids and not any(found[len(ids) :])


def test_labels_of_the_test_part_alone_are_no_crash():
    encoded = encode([say("a", intent="new")], Vocabulary.build([say("a")]))
    assert encoded.intent_ids.tolist() == [-1] and encoded.batch([0]).intents.tolist() == [0]


@given(utterances, st.integers(1, 5), st.integers(1, 4))
def test_evaluation_sees_each_utterance_once_in_order_of_length(corpus, batch_size, num_workers):
    encoded = encode(corpus, Vocabulary.build(corpus))
    seen = []
    for rank in range(num_workers):
        share = {"rank": rank, "num_workers": num_workers}
        batches = list(evaluation_batches(encoded, batch_size, **share))
        assert all(len(batch) <= batch_size for batch in batches)
        assert num_workers > 1 or all(len(batch) == batch_size for batch in batches[:-1])
        lengths = [length for batch in batches for length in batch.lengths]
        assert lengths == sorted(lengths)
        seen += [index for batch in batches for index in batch.indices]
    assert sorted(seen) == list(range(len(corpus)))
    with pytest.raises(UserError, match="must be ≥ 1"):
        next(evaluation_batches(encoded, 0))


def test_storage_follows_the_tokens_not_their_characters():
    """One token of 30 characters 50,000 times: the table holds it once."""
    corpus = [say("x" * 30)] * 50_000
    encoded = encode(corpus, Vocabulary.build(corpus[:1]))
    arrays = [*vars(encoded).values(), *vars(encoded.table).values()]
    stored = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    assert encoded.table.characters.size == 30 and stored < 50_000 * 30
