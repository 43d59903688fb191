"""Canaries are random, their coins fair, and each coin replaces one utterance only."""

import numpy as np
import pytest

from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.experiments.audit_canaries import Canaries


@pytest.fixture(scope="module")
def corpus():
    return list(make_utterances("communication", size=200, seed=1))


def test_canaries_are_made_of_the_vocabulary(corpus):
    vocabulary = Vocabulary.build(corpus)
    canaries = Canaries.draw(vocabulary, count=300, tokens=5)
    assert len(set(canaries.utterances)) == 300
    words = {word for utterance in canaries.utterances for word in utterance.tokens}
    assert words <= set(vocabulary.words[2:]) and len(words) > 0.5 * len(vocabulary.words)
    for utterance in canaries.utterances:
        assert len(utterance.tokens) == len(utterance.slots) == 5
        assert utterance.intent in vocabulary.intents
        assert set(utterance.slots) <= set(vocabulary.slots)


def test_coins_are_fair_and_new_each_time(corpus):
    vocabulary = Vocabulary.build(corpus)
    one, other = (Canaries.draw(vocabulary, count=2000, tokens=1) for _ in range(2))
    for canaries in (one, other):
        assert abs(sum(canaries.is_member) - 1000) < 6 * 500**0.5
    agree = np.mean(np.array(one.is_member) == np.array(other.is_member))
    assert abs(agree - 0.5) < 6 * 0.5 / 2000**0.5
    assert one.utterances != other.utterances


def test_a_coin_replaces_one_utterance(corpus):
    canaries = Canaries.draw(Vocabulary.build(corpus), count=250, tokens=4)
    inserted = canaries.insert(corpus)
    assert len(inserted) == 450 and inserted[:200] == corpus
    for i, is_member in enumerate(canaries.is_member):
        assert (inserted[200 + i] == canaries.utterances[i]) is is_member
        turned = [other ^ (i == j) for j, other in enumerate(canaries.is_member)]
        neighbour = Canaries(canaries.utterances, tuple(turned)).insert(corpus)
        assert [a != b for a, b in zip(inserted, neighbour)].count(True) == 1


def test_pieces_that_are_no_words_are_left_out(corpus):
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "call", "##ing", "mum")
    vocabulary = Vocabulary.of_pieces(WordPiece(pieces, True), corpus, word_source="file")
    canaries = Canaries.draw(vocabulary, count=50, tokens=3)
    assert {word for u in canaries.utterances for word in u.tokens} == {"call", "mum"}
    empty = Vocabulary.of_pieces(WordPiece(pieces[:5], True), corpus, word_source="file")
    with pytest.raises(UserError, match="data.vocabulary"):
        Canaries.draw(empty, count=1, tokens=1)
