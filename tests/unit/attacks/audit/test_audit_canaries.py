"""Canaries are random, their coins fair, and each coin replaces or removes one utterance only."""

import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.attacks.audit.canaries import Canaries
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.dp.sampling.dealing import deal


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
    inserted = canaries.insert(corpus, adjacency="replace_one")
    assert len(inserted) == 450 and inserted[:200] == corpus
    for i, is_member in enumerate(canaries.is_member):
        assert (inserted[200 + i] == canaries.utterances[i]) is is_member
        turned = [other ^ (i == j) for j, other in enumerate(canaries.is_member)]
        neighbour = Canaries(canaries.utterances, tuple(turned)).insert(
            corpus, adjacency="replace_one"
        )
        assert [a != b for a, b in zip(inserted, neighbour)].count(True) == 1
    whole = samplers(450, 1, sampler="shuffle", batch_size=10)[0]
    assert canaries.place(whole, first=200, adjacency="replace_one") is whole


def samplers(num_records, num_workers, *, sampler, batch_size, **settings):
    """Those of all workers, their draws repeatable."""
    return [
        deal(unit="utterance", sampler=sampler, num_records=num_records, batch_size=batch_size,
             rank=rank, num_workers=num_workers, seed=3, insecure_fixed_seed=5, **settings)
        for rank in range(num_workers)
    ]  # fmt: skip


@pytest.mark.parametrize("sampler", ["shuffle", "poisson"])
def test_a_coin_under_zero_out_empties_a_place(corpus, sampler):
    canaries = Canaries.draw(Vocabulary.build(corpus), count=60, tokens=4)
    inserted = canaries.insert(corpus, adjacency="zero_out")
    assert inserted == [*corpus, *canaries.utterances]  # lengths do not depend on the coins
    out = {200 + i for i, is_member in enumerate(canaries.is_member) if not is_member}
    seen = set()
    batch_size = 65 if sampler == "poisson" else 2
    for whole in samplers(260, 2, sampler=sampler, batch_size=batch_size):
        placed = canaries.place(whole, first=200, adjacency="zero_out")
        for name in ("sampler", "steps_per_epoch", "micro_batch_size", "num_units"):
            assert getattr(placed, name) == getattr(whole, name)
        for epoch in range(20):
            draws = list(placed.draws(epoch))
            assert len(draws) == whole.steps_per_epoch
            seen.update(*(draw.records.tolist() for draw in draws))
    assert seen == set(range(260)) - out


def test_a_canary_is_a_user_who_says_one_thing_often(corpus):
    vocabulary = Vocabulary.build(corpus)
    canaries = Canaries.draw(vocabulary, count=30, tokens=4, utterances_per_canary=5)
    assert len(canaries.utterances) == 150 and len(set(canaries.utterances)) == 30
    assert len({utterance.id for utterance in canaries.utterances}) == 150
    users = canaries.users(np.arange(200, dtype=np.int32) // 4)
    assert len(users) == 350 and users.max() == 50 + 30 - 1
    assert (np.bincount(users)[50:] == 5).all()
    replaced = canaries.insert(corpus, adjacency="replace_one")
    for i, is_member in enumerate(canaries.is_member):
        own = slice(5 * i, 5 * i + 5)
        there = replaced[200:][own] == list(canaries.utterances[own])
        assert there is is_member
    whole = deal(unit="user", sampler="shuffle", num_records=350, users=users, batch_size=80,
                 rank=0, num_workers=1, seed=0, max_utterances_per_user=5)  # fmt: skip
    placed = canaries.place(whole, first=whole.num_units - 30, adjacency="zero_out")
    drawn = {users[record] for draw in placed.draws(0) for record in draw.records.tolist()}
    members = {50 + i for i, is_member in enumerate(canaries.is_member) if is_member}
    assert drawn == set(range(50)) | members


def test_pieces_that_are_no_words_are_left_out(corpus):
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "call", "##ing", "mum")
    vocabulary = Vocabulary.of_pieces(WordPiece(pieces, True), corpus, word_source="file")
    canaries = Canaries.draw(vocabulary, count=50, tokens=3)
    assert {word for u in canaries.utterances for word in u.tokens} == {"call", "mum"}
    empty = Vocabulary.of_pieces(WordPiece(pieces[:5], True), corpus, word_source="file")
    one_sentence("data.vocabulary", Canaries.draw, empty, count=1, tokens=1)
