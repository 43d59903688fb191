"""The Poisson sampler: fixed disjoint shards, independent draws with the stated probability.

Each statistical check is a function of a 0/1 table of draws (steps × records); that it can fail is
shown on tables drawn otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from edp_mx.data.poisson_sampling import PoissonShard
from edp_mx.data.sampling import Shard

RECORDS, BATCH, EPOCHS = 240, 12, 200  # 4,000 steps
Q = BATCH / RECORDS
Z = 6  # standard errors: a right sampler fails once in 10⁸


def deal_all(num_records, *, batch_size, num_workers, seed=0, **settings):
    return [
        PoissonShard.deal(num_records, batch_size=batch_size, num_workers=num_workers, rank=rank,
                          seed=seed, **settings)
        for rank in range(num_workers)
    ]  # fmt: skip


def table(shard, epochs=EPOCHS):
    """(steps, records of the shard) 0/1: which record was drawn in which step."""
    drawn = [batch for epoch in range(epochs) for batch in shard.micro_batches(epoch)]
    return np.array([np.isin(shard.indices, batch) for batch in drawn], dtype=np.float64)


def has_rate(draws, q):
    """Whether the frequency of all draws, and that of each record, is q."""
    steps, records = draws.shape
    overall = abs(draws.mean() - q) < Z * np.sqrt(q * (1 - q) / draws.size)
    squares = ((draws.mean(axis=0) - q) ** 2).sum() / (q * (1 - q) / steps)
    return overall and squares < stats.chi2.isf(1e-9, records)


def has_binomial_sizes(draws, q):
    """Whether the sizes of the micro-batches scatter as those of independent draws."""
    steps, records = draws.shape
    ratio = draws.sum(axis=1).var(ddof=1) / (records * q * (1 - q))
    return abs(ratio - 1) < Z * np.sqrt((2 + 1 / (records * q * (1 - q))) / steps)


def are_independent(one, other, q):
    """Whether records of one table are drawn with those of the other as often as by chance.

    The tables are two workers', or one shifted by some steps, or one twice: then a record is not
    held against itself.
    """
    steps, records = one.shape
    joint = one.T @ other  # (records, records): how often both were drawn
    with_others = joint[~np.eye(records, dtype=bool)]
    most = stats.binom.isf(1e-12, steps, q * q)
    stderr = np.sqrt(2 * q * q * steps / with_others.size)  # 2: a pair may count twice
    # the overall rate, which scatters too, moves all pairs together
    stderr += 2 * q * np.sqrt(q * steps / records)
    even = abs(with_others.mean() - steps * q * q) < Z * stderr
    if one is other:
        return with_others.max() <= most and even
    itself = abs(np.diag(joint).sum() - records * steps * q * q)
    return joint.max() <= most and even and itself < 2 * Z * np.sqrt(records * steps * q * q)


@pytest.fixture(scope="module")
def shards():
    return deal_all(RECORDS, batch_size=BATCH, num_workers=2)


@pytest.fixture(scope="module")
def tables(shards):
    return [table(shard) for shard in shards]


def test_every_record_is_drawn_with_the_stated_rate(shards, tables):
    assert shards[0].sample_rate == Q
    for draws in tables:
        assert has_rate(draws, Q)
        assert not has_rate(draws, 2 * Q / 3)
        assert not has_rate(draws, 3 * Q / 2)


def test_sizes_are_binomial(tables):
    for draws in tables:
        assert has_binomial_sizes(draws, Q)


def test_records_steps_epochs_and_workers_are_independent(tables):
    for draws in tables:
        assert are_independent(draws, draws, Q)  # records
        assert are_independent(draws[:-1], draws[1:], Q)  # steps
        per_epoch = len(draws) // EPOCHS
        assert are_independent(draws[:-per_epoch], draws[per_epoch:], Q)  # epochs
    assert are_independent(*tables, Q)  # workers


def test_the_checks_notice_other_samplers(tables):
    shuffled = Shard.deal(RECORDS, batch_size=BATCH, num_workers=2, rank=0, seed=0)
    steps = [b for epoch in range(EPOCHS) for b in shuffled.micro_batches(epoch)]
    draws = np.array([np.isin(shuffled.indices, batch) for batch in steps], dtype=np.float64)
    assert has_rate(draws, Q)
    assert not has_binomial_sizes(draws, Q)  # all of one size
    assert not are_independent(draws[:-1], draws[1:], Q)  # no record twice an epoch
    pairs = np.repeat(tables[0][:, ::2], 2, axis=1)  # neighbours come together
    assert has_rate(pairs[:, ::2], Q) and not has_binomial_sizes(pairs, Q)
    assert not are_independent(pairs, pairs, Q)
    assert not are_independent(tables[0], tables[0].copy(), Q)  # two workers with one key
    repeated = np.repeat(tables[0], 2, axis=0)  # each draw used twice
    assert not are_independent(repeated[:-1], repeated[1:], Q)


@given(
    num_records=st.integers(1, 300),
    num_workers=st.integers(1, 6),
    batch_size=st.integers(1, 300),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 3),
)
def test_shards_and_micro_batches(num_records, num_workers, batch_size, seed, epoch):
    assume(max(batch_size, num_workers) <= num_records)
    settings = {"batch_size": batch_size, "num_workers": num_workers, "seed": seed}
    shards = deal_all(num_records, **settings)
    assert sorted(np.concatenate([s.indices for s in shards])) == list(range(num_records))
    sizes = [len(shard.indices) for shard in shards]
    assert max(sizes) - min(sizes) <= 1 <= min(sizes)
    for shard, again in zip(shards, deal_all(num_records, **settings)):  # who has what is fixed
        np.testing.assert_array_equal(shard.indices, again.indices)
    assert len({shard.steps_per_epoch for shard in shards}) == 1
    assert abs(shards[0].steps_per_epoch - num_records / batch_size) <= 0.5
    for shard in shards:
        batches = list(shard.micro_batches(epoch))
        assert len(batches) == shard.steps_per_epoch
        for batch in batches:
            assert batch.dtype == np.int64 and len(set(batch)) == len(batch)
            assert set(batch) <= set(shard.indices)
        expected = shard.sample_rate * num_records / num_workers
        assert shard.micro_batch_size == pytest.approx(expected, rel=1e-12)


def test_the_deal_is_that_of_the_shuffling_sampler():
    """So that a change of the sampler moves no record to another worker."""
    for rank, shard in enumerate(deal_all(103, batch_size=12, num_workers=4, seed=5)):
        other = Shard.deal(103, batch_size=12, num_workers=4, rank=rank, seed=5)
        np.testing.assert_array_equal(shard.indices, other.indices)


def test_a_rate_of_one_draws_everything_and_a_small_one_often_nothing():
    (shard,) = deal_all(20, batch_size=20, num_workers=1)
    (batch,) = shard.micro_batches(0)
    assert list(batch) == list(range(20))
    (shard,) = deal_all(2000, batch_size=1, num_workers=1)
    empty = sum(len(batch) == 0 for batch in shard.micro_batches(0))
    expected = 2000 * (1 - 1 / 2000) ** 2000
    assert abs(empty - expected) < Z * np.sqrt(expected)
    assert next(iter(shard.micro_batches(1))).dtype == np.int64


def test_draws_are_secret_and_no_seed_repeats_them():
    """The same shard, dealt with the same seed: each start, epoch and call draws otherwise."""
    shards = [*deal_all(400, batch_size=200, num_workers=1), *deal_all(400, batch_size=200,
                                                                     num_workers=1)]  # fmt: skip
    first = [list(shard.micro_batches(epoch))[0] for shard in shards for epoch in (0, 0, 1)]
    for i in range(len(first)):
        for j in range(i):
            assert set(first[i]) != set(first[j])


def test_the_insecure_draws_repeat_and_differ_by_seed_rank_and_epoch():
    def draws(seed, rank, epoch):
        shard = deal_all(800, batch_size=400, num_workers=2, insecure_fixed_seed=seed)[rank]
        return [tuple(np.searchsorted(shard.indices, b)) for b in shard.micro_batches(epoch)]

    assert draws(1, 0, 0) == draws(1, 0, 0)
    assert len({draws(*place)[0] for place in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]}) == 4


def test_memory_a_draw_is_seldom_much_larger_than_expected():
    """The bound that the class states, against the binomial distribution."""
    for expected in (0.05, 0.5, 1, 2, 8, 64, 512, 4096):
        most = expected + 6 * np.sqrt(expected) + 6
        for records in (int(expected) + 1, 10_000, 10_000_000):
            assert stats.binom.sf(most, records, min(1, expected / records)) < 1e-6
