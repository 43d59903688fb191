"""Which pieces are hidden, and in which order the lines come, against counts and chance."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data.masking import Maskable, PieceBatch, global_batches, mask, piece_batch

PAD, UNK, CLS, SEP, MASK = SPECIAL = range(5)
SIZE = 40
MASKABLE = Maskable(num_pieces=SIZE, mask_id=MASK, special_ids=SPECIAL)


def batch_of(generator, lengths, unknown=0.1):
    """Rows of [CLS] random pieces, some [UNK], [SEP], padding."""
    lengths = np.array(lengths, np.int32)
    pieces = np.zeros((len(lengths), lengths.max() + 2), np.int32)
    for row, length in zip(pieces, lengths):
        inner = generator.integers(5, SIZE, length)
        row[1 : length + 1] = np.where(generator.random(length) < unknown, UNK, inner)
        row[0], row[length + 1] = CLS, SEP
    return PieceBatch(pieces, lengths + 2)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.floats(0.01, 1.0),
       st.integers(0, 2**32))  # fmt: skip
def test_each_line_hides_its_share_and_nothing_else_changes(lengths, fraction, seed):
    generator = np.random.default_rng(seed)
    batch = batch_of(generator, lengths)
    masked = mask(batch, MASKABLE, fraction=fraction, generator=generator)
    hidden = {(n, p) for n, p in masked.places.T.tolist()} if masked.counts.any() else set()
    assert len(hidden) == int(masked.counts.sum())
    for n, row in enumerate(batch.pieces):
        ordinary = [p for p, piece in enumerate(row) if piece not in SPECIAL]
        wanted = max(1, round(fraction * len(ordinary))) if ordinary else 0
        chosen = [p for m, p in hidden if m == n]
        assert len(chosen) == wanted and set(chosen) <= set(ordinary)
        for p, piece in enumerate(row):
            if p not in chosen:
                assert masked.pieces[n, p] == piece
    if hidden:
        assert (masked.targets == batch.pieces[tuple(masked.places)]).all()
    seen = masked.pieces[tuple(masked.places)]
    assert not np.isin(seen, [PAD, UNK, SEP]).any()


@pytest.fixture
def many(generator):
    batch = batch_of(generator, [40] * 3000, unknown=0)
    return batch, mask(batch, MASKABLE, fraction=0.15, generator=generator)


def within(count, total, probability):
    """Within six standard deviations of a binomial."""
    expected = total * probability
    return abs(count - expected) < 6 * np.sqrt(expected * (1 - probability))


def test_eight_in_ten_are_masked_one_random_one_kept(many):
    _, masked = many
    total = len(masked.targets)
    assert total == 3000 * 6
    seen = masked.pieces[tuple(masked.places)]
    by_chance = 0.1 / (SIZE - 5)  # a random piece that is the true one
    assert within((seen == MASK).sum(), total, 0.8)
    assert within((seen == masked.targets).sum(), total, 0.1 + by_chance)
    other = seen[(seen != MASK) & (seen != masked.targets)]
    for piece in range(5, SIZE):
        assert within((other == piece).sum(), len(other), 1 / (SIZE - 5))


def test_every_place_is_as_likely(many):
    _, masked = many
    counts = np.bincount(masked.places[1], minlength=42)
    assert counts[0] == counts[41] == 0
    assert all(within(count, 3000, 6 / 40) for count in counts[1:41])


def test_where_nothing_can_be_hidden_nothing_counts(generator):
    batch = batch_of(generator, [0, 3], unknown=1.0)
    masked = mask(batch, MASKABLE, fraction=0.15, generator=generator)
    assert masked.counts.tolist() == [0.0] and masked.places.shape == (2, 1)
    np.testing.assert_array_equal(masked.pieces, batch.pieces)


def batches_of(lines, batch_size, buffer_size, seed=0, epoch=0):
    return list(
        global_batches(
            lines, batch_size=batch_size, buffer_size=buffer_size, seed=seed, epoch=epoch
        )
    )


@given(st.integers(0, 200), st.integers(1, 20), st.integers(1, 60), st.integers(0, 3))
def test_no_line_comes_twice_and_only_a_rest_is_left_out(count, batch_size, buffer_size, epoch):
    lines = [f"{i} {'x' * (i * i % 17)}" for i in range(count)]
    batches = batches_of(iter(lines), batch_size, buffer_size, epoch=epoch)
    assert [len(batch) for batch in batches] == [batch_size] * (count // batch_size)
    seen = Counter(line for batch in batches for line in batch)
    assert set(seen.values()) <= {1} and set(seen) <= set(lines)


def test_the_order_is_that_of_its_seed_and_epoch():
    lines = [f"{i} {'x' * (i % 9)}" for i in range(403)]
    one = batches_of(lines, 10, 100)
    assert one == batches_of(lines, 10, 100)
    for other in (batches_of(lines, 10, 100, epoch=1), batches_of(lines, 10, 100, seed=1)):
        assert one != other
    left = [set(lines) - {line for batch in batches_of(lines, 10, 100, epoch=epoch)
                          for line in batch} for epoch in range(20)]  # fmt: skip
    assert all(len(rest) == 3 for rest in left)
    assert len(set.union(*left)) > 10  # over the epochs no line is left out for ever


def test_what_is_left_out_is_not_chosen_by_length():
    lines = ["x" * (i % 40 + 1) for i in range(79)]
    lengths = []
    for epoch in range(200):
        rest = Counter(lines)
        rest.subtract(line for batch in batches_of(lines, 40, 79, epoch=epoch) for line in batch)
        lengths += [len(line) for line in rest.elements()]
    assert len(lengths) == 200 * 39
    assert abs(np.mean(lengths) - np.mean([len(line) for line in lines])) < 0.5


def test_lines_of_a_batch_are_of_similar_length_and_batches_are_shuffled(generator):
    lines = ["x" * int(n) for n in generator.integers(1, 100, 2000)]
    batches = batches_of(lines, 20, 1000)
    spreads = [len(max(batch, key=len)) - len(min(batch, key=len)) for batch in batches]
    assert np.mean(spreads) < 5  # 100 at random
    means = np.array([np.mean([len(line) for line in batch]) for batch in batches[:50]])
    assert abs(np.corrcoef(means, np.arange(50))[0, 1]) < 0.8  # sorted: 1; chance: 0.14


def test_lines_become_rows_of_pieces():
    batch = piece_batch(
        ["ab", "abcdef", ""], lambda line: [ord(c) for c in line], cls_id=1, sep_id=2, pad_id=0,
        max_pieces=5)  # fmt: skip
    assert batch.pieces.tolist() == [[1, 97, 98, 2, 0], [1, 97, 98, 99, 2], [1, 2, 0, 0, 0]]
    assert batch.lengths.tolist() == [4, 5, 2]
    assert batch.pieces.dtype == batch.lengths.dtype == np.int32
