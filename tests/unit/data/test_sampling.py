"""The shuffling sampler: fixed disjoint shards, exact sizes, each record at most once."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from edp_mx.data.sampling import Shard
from edp_mx.errors import UserError


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
