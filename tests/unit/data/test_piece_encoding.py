"""Utterances as word pieces: aligned with their tokens, cut where they are too long."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.utterances import drawn_corpora

from edp_mx.data.encoding import encode
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import SPECIAL_PIECES, WordPiece

PIECES = ("a", "##a", "b", "##b", "ab", "##ab", "'", "e")
WORDPIECE = WordPiece((*SPECIAL_PIECES, *PIECES))

utterances = drawn_corpora(st.text("abz'", min_size=1, max_size=6), max_size=8)


def vocabulary_of(corpus, wordpiece=WORDPIECE):
    return Vocabulary.of_pieces(wordpiece, corpus, word_source="file")


@given(utterances, st.integers(1, 8), st.integers(3, 14), st.data())
def test_batch_equals_a_loop(corpus, max_tokens, max_pieces, data):
    vocabulary = vocabulary_of(corpus)
    encoded = encode(corpus, vocabulary, max_tokens=max_tokens, max_pieces=max_pieces)
    indices = data.draw(st.lists(st.integers(0, len(corpus) - 1), min_size=1, max_size=6))
    batch = encoded.batch(indices)
    pieces, lengths, firsts = batch.inputs
    assert {array.dtype for array in batch.inputs} == {np.dtype("int32")}
    assert pieces.shape == (len(indices), lengths.max()) and pieces.shape[1] <= max_pieces
    assert firsts.shape == batch.slots.shape
    for row, index in enumerate(indices):
        expected, places = [WORDPIECE.special_ids.cls], []
        for place, spelled in enumerate(corpus[index].tokens[:max_tokens]):
            ids = WORDPIECE.ids(spelled)
            if place == 0:
                ids = ids[: max_pieces - 2]
            if len(expected) + len(ids) + 1 > max_pieces:
                break
            places.append(len(expected))
            expected += ids
        expected.append(WORDPIECE.special_ids.sep)
        assert lengths[row] == len(expected)
        assert pieces[row, : lengths[row]].tolist() == expected
        assert not pieces[row, lengths[row] :].any()
        assert batch.lengths[row] == encoded.lengths[index] == len(places) >= 1
        assert (
            firsts[row, : len(places)].tolist() == places and not firsts[row, len(places) :].any()
        )
        tags = [vocabulary.slot_id(tag) for tag in corpus[index].slots[: len(places)]]
        assert batch.slots[row, : len(places)].tolist() == tags
    kept = encoded.lengths
    assert encoded.num_cut == sum(len(u.tokens) > n for u, n in zip(corpus, kept))


def test_hard_tokens_keep_their_tags():
    """Each token's tag stands at its first piece, whatever the token is made of."""
    tokens = ("don't", "café", "7:30", "zzz", "\u200b", "ab" * 40, "[CLS]", "ab")
    tags = ("O", "B-x", "I-x", "B-y", "O", "B-x", "O", "B-y")
    corpus = [Utterance(tokens, tags, "i")]
    batch = encode(corpus, vocabulary_of(corpus)).batch([0])
    firsts = batch.inputs.firsts[0]
    assert batch.lengths.tolist() == [8] and (np.diff(firsts) >= 1).all()
    spelled = [WORDPIECE.pieces[batch.inputs.pieces[0, place]] for place in firsts]
    assert spelled == ["[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "ab", "[UNK]", "ab"]
    assert (batch.inputs.pieces[0] == WORDPIECE.special_ids.cls).sum() == 1
    vocabulary = vocabulary_of(corpus)
    assert [vocabulary.slots[i] for i in batch.slots[0]] == list(tags)


def test_a_vocabulary_of_pieces_survives_its_file():
    corpus = [Utterance(("a", "b"), ("B-x", "O"), "i")]
    vocabulary = vocabulary_of(corpus)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary and again.tokenizer.ids("ab") == WORDPIECE.ids("ab")
    assert vocabulary.is_public is False  # the labels were read off the training part
