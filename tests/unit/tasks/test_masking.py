"""Which pieces are hidden, against counts and chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data.batching import PieceInputs
from edp_mx.tasks.masked_lm.masking import Maskable, mask

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
    return PieceInputs(pieces, lengths + 2, np.zeros((len(lengths), 1), np.int32))


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
