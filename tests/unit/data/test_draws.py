"""Shuffled and Poisson draws: shards, chances, and that a seed draws what it has always drawn."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from edp_mx.data import columns as columns_module
from edp_mx.data.splits import PARTS, own_split, split_by_keys
from edp_mx.data.strata import strata
from edp_mx.dp.sampling.poisson import PoissonShard
from edp_mx.dp.sampling.shuffle import Shard
from edp_mx.errors import UserError


@pytest.fixture
def keys_and_intents():
    """3,000 texts of which many repeat, and intents."""
    generator = np.random.Generator(np.random.PCG64(5))
    keys, intents = generator.integers(0, 2000, 3000), generator.integers(0, 7, 3000) ** 2
    keys[::3] += 10**12 * np.arange(1000)
    return keys, intents


@pytest.mark.parametrize("piece", [7, 1 << 13])
def test_splits_are_those_of_old_runs(piece, keys_and_intents, monkeypatch, digest):
    monkeypatch.setattr(columns_module, "_CHUNK", piece)
    wanted = {0: "e935d38bae386934", 1: "f496dab17a7814bc", 9: "4424a48e57ae72b1"}
    for seed, known in wanted.items():
        split = split_by_keys(*keys_and_intents, seed=seed)
        assert digest(getattr(split, part) for part in PARTS) == known
    sizes = {"train": 2500, "test": 500}
    rows, split = own_split(sizes, *keys_and_intents, seed=3, held_out=0.05)
    assert digest([rows, *(getattr(split, part) for part in PARTS)]) == "5f5f6c997828aadc"


@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 4)), max_size=30))
def test_strata_are_those_of_a_loop(pairs):
    groups = {}
    for place, (key, _) in enumerate(pairs):
        groups.setdefault(key, []).append(place)
    of_kind = {}
    for group in groups.values():  # in the order of their first places
        of_kind.setdefault(pairs[group[0]][1], []).append(group)
    wanted = [
        (
            [group[0] for group in ours if len(group) == 1],
            sorted((group for group in ours if len(group) > 1), key=len, reverse=True),
        )
        for ours in sorted(of_kind.values(), key=len, reverse=True)
    ]
    keys, intents = np.array(pairs, np.int64).reshape(-1, 2).T
    found = [
        (alone.tolist(), [group.tolist() for group in repeats.largest_first()])
        for alone, repeats in strata(keys, intents)
    ]
    assert found == wanted


@pytest.mark.parametrize(
    "records, batch, workers, rank, buckets, wanted",
    [
        (1_000, 64, 4, 1, 0, ("cc6107d50b9270a5", "86cb109686ed0c98")),
        (1_000, 16, 1, 0, 3, ("a1c26edfd0d4c84c", "3111775af62a2445")),
        (70_000, 64, 2, 1, 0, ("37e164c2a799b3fb", "dae2a0ed14ef37fe")),
    ],
)
def test_shuffles_are_those_of_old_runs(records, batch, workers, rank, buckets, wanted, digest):
    lengths = np.arange(records) % 13
    shard = Shard.deal(records, batch_size=batch, num_workers=workers, rank=rank, seed=7,
                       length_buckets=buckets, lengths=lengths, adjacency="zero_out")  # fmt: skip
    for epoch, known in zip((0, 3), wanted):
        batches = list(shard.micro_batches(epoch))
        assert digest(batches) == known and all(b.dtype == np.int64 for b in batches)


@pytest.mark.parametrize(
    "records, batch, workers, rank, wanted",
    [
        (1_000, 64, 4, 1, ("b381191d9e0cf23c", "6d774b7627da18bb")),
        (200_000, 5_000, 1, 0, ("d7f8936778f819de", "7b67137d1e8d1393")),
    ],
)
def test_poisson_draws_are_those_of_old_runs(records, batch, workers, rank, wanted, digest):
    shard = PoissonShard.deal(records, batch_size=batch, num_workers=workers, rank=rank, seed=7,
                              steps_per_epoch=round(records / batch),
                              insecure_fixed_seed=3)  # fmt: skip
    for epoch, known in zip((0, 3), wanted):
        assert digest(shard.micro_batches(epoch)) == known


def test_what_is_left_over_changes_and_nothing_is_left_over_for_ever():
    shard = Shard.deal(11, batch_size=4, num_workers=1, rank=0, seed=0)
    left = [set(range(11)) - set(np.concatenate(list(shard.micro_batches(e)))) for e in range(60)]
    assert all(len(records) == 3 for records in left)
    assert set.union(*left) == set(range(11))


def test_shuffling_is_uniform():
    shard = Shard.deal(5, batch_size=1, num_workers=1, rank=0, seed=7)
    first = [int(next(iter(shard.micro_batches(epoch)))[0]) for epoch in range(5000)]
    counts = np.bincount(first, minlength=5)
    assert ((counts - 1000) ** 2 / 1000).sum() < 23.5  # chi-squared, 4 degrees: p = 1e-4


@given(
    lengths=st.lists(st.integers(1, 30), min_size=30, max_size=150),
    num_workers=st.integers(1, 3),
    size=st.integers(1, 2),
    length_buckets=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_length_buckets(lengths, num_workers, size, length_buckets, seed):
    settings = {
        "batch_size": size * num_workers,
        "num_workers": num_workers,
        "seed": seed,
        "lengths": lengths,
        "length_buckets": length_buckets,
        "adjacency": "zero_out",
    }
    try:
        shards = [Shard.deal(len(lengths), rank=r, **settings) for r in range(num_workers)]
    except UserError as error:
        assume("length_buckets" not in str(error))
        raise
    assert sorted(np.concatenate([s.indices for s in shards])) == list(range(len(lengths)))
    sizes = [len(s.indices) for s in shards]
    assert max(sizes) - min(sizes) <= 1
    epochs = [list(shard.micro_batches(2)) for shard in shards]
    assert len({len(batches) for batches in epochs}) == 1
    for batches in epochs:
        seen = np.concatenate(batches)
        assert len(set(seen)) == len(seen) and all(len(b) == size for b in batches)
    bucket_of = {
        record: bucket
        for shard in shards
        for bucket, records in enumerate(shard.buckets)
        for record in records
    }
    for step in zip(*epochs):  # all workers take the same bucket in the same step
        assert len({bucket_of[record] for batch in step for record in batch}) == 1
    by_length = {}
    for record, bucket in bucket_of.items():
        assert by_length.setdefault(lengths[record], bucket) == bucket


def test_the_order_is_independent_of_the_lengths_without_buckets():
    settings = {"batch_size": 2, "num_workers": 1, "rank": 0, "seed": 0}
    one = Shard.deal(10, lengths=list(range(10)), **settings)
    two = Shard.deal(10, lengths=[5] * 10, **settings)
    for a, b in zip(one.micro_batches(0), two.micro_batches(0)):
        np.testing.assert_array_equal(a, b)


RECORDS, BATCH, EPOCHS = 240, 12, 200  # 4,000 steps
Q = BATCH / RECORDS
Z = 6  # standard errors: a right sampler fails once in 10⁸


def deal_all(num_records, *, batch_size, num_workers, seed=0, **settings):
    return [
        PoissonShard.deal(num_records, batch_size=batch_size, num_workers=num_workers, rank=rank,
                          seed=seed, steps_per_epoch=round(num_records / batch_size), **settings)
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
