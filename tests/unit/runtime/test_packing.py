"""What a recurrence reads, against a loop over utterances."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.runtime.packing import Packing

lengths_of = st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any)


def read_by_loop(lengths, reverse):
    """For each step the tokens (t, n) that it reads, in any order."""
    for step in range(max(lengths)):
        yield {
            (length - 1 - step if reverse else step, n)
            for n, length in enumerate(lengths)
            if length > step
        }


@given(lengths=lengths_of, spare=st.integers(0, 2), reverse=st.booleans())
def test_each_step_reads_one_token_of_each_utterance_that_has_it(lengths, spare, reverse):
    num_steps, num_examples = max(lengths) + spare, len(lengths)
    batch = np.arange(num_steps * num_examples * 2.0).reshape(num_steps, num_examples, 2)
    packing = Packing.of(np.float32(lengths), reverse=reverse)
    rows = packing.pack(batch)
    tokens = [(int(t), int(n)) for t, n in zip(*divmod(rows[:, 0] // 2, num_examples))]
    found = [tokens[step] for step in packing.steps]
    assert [set(step) for step in found] == list(read_by_loop(lengths, reverse))
    assert packing.num_rows == len(tokens) == sum(lengths)
    for before, step in zip(found, found[1:]):  # its utterances lie first in the step before
        assert [n for _, n in step] == [n for _, n in before[: len(step)]]


@given(lengths=lengths_of, spare=st.integers(0, 2), reverse=st.booleans())
def test_rows_come_back_with_zeros_at_padding(lengths, spare, reverse):
    num_steps, num_examples = max(lengths) + spare, len(lengths)
    batch = np.random.default_rng(0).normal(size=(num_steps, num_examples, 3)).astype(np.float32)
    is_token = np.arange(num_steps)[:, None] < lengths  # (T, N)
    expected = np.where(is_token[:, :, None], batch, 0)
    packing = Packing.of(np.array(lengths), reverse=reverse)
    rows, out = packing.pack(batch), np.full_like(batch, np.nan)
    packing.fill(out, lambda place: np.copyto(place, rows))
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(packing.spread(rows, batch.shape), expected)
    packing.add(out, rows)
    np.testing.assert_array_equal(out, 2 * expected)


@given(lengths=lengths_of, reverse=st.booleans())
def test_pairs_are_tokens_and_what_was_read_before_them(lengths, reverse):
    shape = max(lengths), len(lengths)
    batch = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(*shape, 1)
    packing = Packing.of(np.array(lengths), reverse=reverse)
    rows = packing.pack(batch)
    later, earlier = packing.pairs(rows, rows)
    expected = {
        (batch[t, n, 0], batch[t + 1 if reverse else t - 1, n, 0])
        for n, length in enumerate(lengths)
        for t in (range(length - 1) if reverse else range(1, length))
    }
    found = list(zip(later.ravel(), earlier.ravel()))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_equal_lengths_cost_no_copy():
    batch = np.zeros((3, 4, 2), np.float32)
    for reverse in (False, True):
        packing = Packing.of(np.full(4, 3), reverse=reverse)
        assert np.shares_memory(packing.pack(batch), batch)
        assert np.shares_memory(packing.spread(packing.pack(batch), batch.shape), batch)
        given = []
        packing.fill(batch, given.append)
        assert np.shares_memory(given[0], batch)
