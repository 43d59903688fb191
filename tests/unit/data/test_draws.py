"""What a seed draws is what it has always drawn, in whatever types the places are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data import columns as columns_module
from edp_mx.data.poisson_sampling import PoissonShard
from edp_mx.data.sampling import Shard
from edp_mx.data.splits import PARTS, own_split, split_by_keys
from edp_mx.data.strata import strata


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
                              insecure_fixed_seed=3)  # fmt: skip
    for epoch, known in zip((0, 3), wanted):
        assert digest(shard.micro_batches(epoch)) == known
