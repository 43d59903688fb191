"""Canaries are random, their coins fair, and each coin replaces or removes one utterance only."""

import numpy as np
import pytest

from edp_mx.data.poisson_sampling import PoissonShard
from edp_mx.data.sampling import Shard
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.errors import UserError
from edp_mx.experiments.audit_canaries import Canaries, without


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
    shard = Shard.deal(450, batch_size=10, num_workers=1, rank=0, seed=0)
    assert canaries.empty_places(shard, first=200, adjacency="replace_one") is shard


def shards(num_records, num_workers, *, is_poisson):
    """The shards of all workers, their draws repeatable."""
    if is_poisson:
        return [
            PoissonShard.deal(num_records, batch_size=num_records // 4, num_workers=num_workers,
                              rank=rank, seed=3, insecure_fixed_seed=5)
            for rank in range(num_workers)
        ]  # fmt: skip
    return [
        Shard.deal(num_records, batch_size=num_workers, num_workers=num_workers, rank=rank, seed=3)
        for rank in range(num_workers)
    ]


@pytest.mark.parametrize("is_poisson", [False, True], ids=["shuffle", "poisson"])
def test_a_coin_under_zero_out_empties_a_place(corpus, is_poisson):
    canaries = Canaries.draw(Vocabulary.build(corpus), count=60, tokens=4)
    inserted = canaries.insert(corpus, adjacency="zero_out")
    assert inserted == [*corpus, *canaries.utterances]  # lengths do not depend on the coins
    out = {200 + i for i, is_member in enumerate(canaries.is_member) if not is_member}
    seen = set()
    for whole in shards(260, 2, is_poisson=is_poisson):
        shard = canaries.empty_places(whole, first=200, adjacency="zero_out")
        for name in ("sampler", "steps_per_epoch", "micro_batch_size"):
            assert getattr(shard, name) == getattr(whole, name)
        for epoch in range(20):
            batches = list(shard.micro_batches(epoch))
            assert len(batches) == whole.steps_per_epoch
            assert all(batch.dtype == np.int64 for batch in batches)
            seen.update(*(batch.tolist() for batch in batches))
    assert seen == set(range(260)) - out


def test_an_empty_place_moves_no_other_record():
    whole = Shard.deal(60, batch_size=4, num_workers=1, rank=0, seed=1)
    with_gaps = without(whole, np.array([7, 30]))
    for epoch in range(3):
        for batch, rest in zip(whole.micro_batches(epoch), with_gaps.micro_batches(epoch)):
            assert rest.tolist() == [i for i in batch.tolist() if i not in (7, 30)]


def test_the_others_are_drawn_as_often_beside_an_empty_place():
    whole = PoissonShard.deal(40, batch_size=10, num_workers=1, rank=0, seed=1)
    with_gaps = without(whole, np.arange(30, 40))
    assert with_gaps.sample_rate == whole.sample_rate == 0.25
    drawn = np.concatenate(
        [batch for epoch in range(500) for batch in with_gaps.micro_batches(epoch)]
    )
    counts = np.bincount(drawn, minlength=40)
    assert (counts[30:] == 0).all()
    assert (abs(counts[:30] - 500) < 6 * (2000 * 0.25 * 0.75) ** 0.5).all()  # 4 steps an epoch


def test_pieces_that_are_no_words_are_left_out(corpus):
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "call", "##ing", "mum")
    vocabulary = Vocabulary.of_pieces(WordPiece(pieces, True), corpus, word_source="file")
    canaries = Canaries.draw(vocabulary, count=50, tokens=3)
    assert {word for u in canaries.utterances for word in u.tokens} == {"call", "mum"}
    empty = Vocabulary.of_pieces(WordPiece(pieces[:5], True), corpus, word_source="file")
    with pytest.raises(UserError, match="data.vocabulary"):
        Canaries.draw(empty, count=1, tokens=1)
