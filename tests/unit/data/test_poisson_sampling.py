"""The Poisson sampler: fixed disjoint shards, independent draws with the stated probability.

Each statistical check is a function of a 0/1 table of draws (steps × records); that it can fail is
shown on tables drawn otherwise.
"""

import numpy as np
import pytest
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
