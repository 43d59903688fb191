"""Gaussian, independent, never the same twice."""

import copy
import os
import pickle
import tracemalloc
from math import ceil

import numpy as np
import pytest
from scipy import stats
from support.normality import normal

from edp_mx.dp.privacy import noise as module
from edp_mx.dp.privacy.box_muller import BoxMuller
from edp_mx.dp.privacy.noise import PAIRS, NoiseStream, refuse_equal
from edp_mx.errors import UserError

BLOCK = 2 * PAIRS

SIZE = 1_000_000
Z = 6  # standard errors: with keys of the operating system, a right one fails once in 10⁸
RARE = 1e-9


def test_the_numbers_are_standard_normal():
    values = normal(NoiseStream.from_operating_system(), SIZE).astype(np.float64)
    assert stats.kstest(values, "norm").pvalue > RARE
    assert abs(values.mean()) * SIZE**0.5 < Z
    assert abs(values.var() - 1) * (SIZE / 2) ** 0.5 < Z
    assert abs((values**4).mean() - 3) * (SIZE / 96) ** 0.5 < Z


def test_the_far_tails_are_neither_thin_nor_thick():
    size = 16_000_000
    values = abs(normal(NoiseStream.from_operating_system(), size))
    for bound in (3, 4, 5):
        tail = stats.poisson(2 * stats.norm.sf(bound) * size)
        assert tail.ppf(RARE) <= (values > bound).sum() <= tail.isf(RARE)


def test_a_wrong_scale_would_be_noticed():
    values = normal(NoiseStream.from_operating_system(), SIZE).astype(np.float64)
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(values * wrong, "norm").pvalue < 1e-12


@pytest.mark.parametrize("lag", [1, 2, PAIRS, 2 * PAIRS])
def test_neighbours_and_partners_are_uncorrelated(lag):
    values = normal(NoiseStream.from_operating_system(), SIZE).astype(np.float64)
    assert abs((values[lag:] * values[:-lag]).mean()) * (SIZE - lag) ** 0.5 < Z
    squares = values**2 - 1  # partners share a radius: they must not show it
    assert abs((squares[lag:] * squares[:-lag]).mean()) / 2 * (SIZE - lag) ** 0.5 < Z


def test_two_streams_and_two_calls_differ():
    one, other = NoiseStream.from_operating_system(), NoiseStream.from_operating_system()
    first, second, elsewhere = normal(one, SIZE), normal(one, SIZE), normal(other, SIZE)
    assert one.fingerprint != other.fingerprint
    for x, y in ((first, second), (first, elsewhere)):
        assert abs(np.corrcoef(x, y)[0, 1]) * SIZE**0.5 < Z
        assert not (x == y).all()


def test_an_insecure_stream_repeats_itself_but_differs_by_rank():
    again = [normal(NoiseStream.insecure(seed=7, rank=rank), 1000) for rank in (0, 0, 1)]
    assert (again[0] == again[1]).all()
    assert not (again[0] == again[2]).any()


def test_equal_keys_are_refused_by_rank():
    refuse_equal(["a", "b", "c"])
    with pytest.raises(UserError, match="workers 1 and 2"):
        refuse_equal(["a", "b", "b"])


def test_the_key_of_the_masks_is_another_secret():
    one, other = NoiseStream.from_operating_system(), NoiseStream.from_operating_system()
    assert one.mask_key != other.mask_key and one.mask_key.hex() != one.fingerprint
    again = [NoiseStream.insecure(seed=1, rank=rank).mask_key for rank in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def use_threads(monkeypatch, threads):
    monkeypatch.setattr(module, "allowed_threads", lambda: threads)


@pytest.mark.parametrize("size", [1, BLOCK, BLOCK + 1, 7 * BLOCK + 12_345])
def test_the_number_of_threads_changes_no_bit(monkeypatch, generator, size):
    values = generator.normal(size=size).astype(np.float32)
    results = []
    for threads in (1, 2, 3, 8):
        use_threads(monkeypatch, threads)
        stream, array = NoiseStream.insecure(seed=3, rank=1), values.copy()
        for _ in range(2):  # the second call goes on, whoever did what in the first
            stream.scale_and_add(array, factor=0.9, stddev=0.1)
        results.append(array)
    assert all((other == results[0]).all() for other in results)


@pytest.mark.parametrize("threads", [1, 3])
def test_no_block_of_the_key_stream_is_used_twice(monkeypatch, threads):
    used, add = [], BoxMuller.scale_and_add

    def recorded(self, target, source, *, block, **settings):
        used.append(block)
        return add(self, target, source, block=block, **settings)

    monkeypatch.setattr(BoxMuller, "scale_and_add", recorded)
    use_threads(monkeypatch, threads)
    stream, sizes = NoiseStream.from_operating_system(), (0, 1, BLOCK, 3 * BLOCK + 1, 5)
    for size in sizes:
        normal(stream, size)
    assert sorted(used) == list(range(sum(ceil(size / BLOCK) for size in sizes)))


def test_blocks_halves_and_threads_are_independent(monkeypatch):
    use_threads(monkeypatch, 2)
    blocks = normal(NoiseStream.from_operating_system(), 8 * BLOCK).reshape(16, PAIRS)
    assert len({block[:100].tobytes() for block in blocks}) == 16
    for numbers in (blocks, blocks**2):  # a common radius would show in the squares
        correlation = np.corrcoef(numbers.astype(np.float64)) - np.eye(16)
        assert abs(correlation).max() * PAIRS**0.5 < 7  # the largest of 120


def test_parts_are_as_one_after_the_other_and_the_rest_stays(monkeypatch, generator):
    use_threads(monkeypatch, 2)
    size = 3 * BLOCK
    parts = [
        (slice(16, 20), 0.5),
        (slice(20, 20), 0.5),
        (slice(20, BLOCK + 7), 2.0),
        (slice(BLOCK + 9, BLOCK + 10), 0.0),
        (slice(BLOCK + 10, size), 0.1),
    ]
    values = generator.normal(size=size).astype(np.float32)
    for source in (None, values[::-1].copy()):
        together, single = values.copy(), values.copy()
        stream = NoiseStream.insecure(seed=1, rank=0)
        stream.scale_and_add_parts(together, parts=iter(parts), factor=0.3, source=source)
        stream = NoiseStream.insecure(seed=1, rank=0)
        for part, stddev in parts:
            given = None if source is None else source[part]
            stream.scale_and_add(single[part], factor=0.3, stddev=stddev, source=given)
        assert (together == single).all()
        outside = np.r_[0:16, BLOCK + 7 : BLOCK + 9]
        assert (together[outside] == values[outside]).all()
        assert (together[:BLOCK][20:] != values[:BLOCK][20:]).mean() > 0.99


@pytest.mark.parametrize("size", [0, 1, 1001, BLOCK - 1, BLOCK, BLOCK + 1, 5 * PAIRS])
def test_a_factor_of_one_keeps_every_bit_of_the_sum(size, generator):
    values = generator.normal(size=size).astype(np.float32)
    noise = normal(NoiseStream.insecure(seed=1, rank=0), size)
    for source in (None, values):
        array = values.copy() if source is None else np.full(size, np.nan, np.float32)
        NoiseStream.insecure(seed=1, rank=0).scale_and_add(
            array, factor=1.0, stddev=1.0, source=source
        )
        assert (array == values + noise).all()


@pytest.mark.parametrize(
    "array, source",
    [
        (np.zeros(8, np.float32)[::2], None),
        (np.zeros(8, np.float32)[::-1], None),
        (np.zeros(8, np.float64), None),
        (np.zeros((2, 4), np.float32), None),
        (np.zeros(4, np.float32), np.zeros(8, np.float32)[::2]),
        (np.zeros(4, np.float32), np.zeros(4, np.float16)),
        (np.zeros(4, np.float32), np.zeros(8, np.float64)[::2]),
        (np.zeros(4, np.float32), np.zeros(5, np.float64)),
        (np.zeros(4, np.float32), np.zeros(5, np.float32)),
        (np.zeros(4, np.float32), np.zeros(1, np.float32)),
    ],
)
def test_what_would_be_copied_or_left_out_is_refused(array, source):
    with pytest.raises(ValueError, match="noise is added to|but the array has"):
        NoiseStream.from_operating_system().scale_and_add(
            array, factor=1.0, stddev=1.0, source=source
        )
    assert not array.any()


def test_a_gradient_is_never_copied(monkeypatch):
    use_threads(monkeypatch, 2)
    stream, array = NoiseStream.from_operating_system(), np.zeros(20 * BLOCK, np.float32)
    stream.scale_and_add(array, factor=0.5, stddev=1.0)  # makes the threads' memory
    tracemalloc.start()
    stream.scale_and_add(array, factor=0.5, stddev=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < array.nbytes / 40


def test_a_stream_is_neither_copied_nor_taken_into_a_fork(monkeypatch):
    stream = NoiseStream.from_operating_system()
    for repeat in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            repeat(stream)
    assert not (normal(copy.copy(stream), 9) == normal(stream, 9)).all()  # it shares the books
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="forked"):
        normal(stream, 1)
