"""The order of lines: complete, without repetition, the same for the same place."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data.masking import global_batches, piece_batch


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
