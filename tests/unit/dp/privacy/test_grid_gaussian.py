"""Hardened noise against long doubles from the same cipher, and what of the source can be seen."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats
from support.normality import normal

from edp_mx.dp.privacy.box_muller import PAIRS, BoxMuller
from edp_mx.dp.privacy.grid_gaussian import GridGaussian, grid_of
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.runtime.kernels import call

KEY = bytes(range(32))
SMALL = 2.0**-10  # uniform numbers below it have more bits
LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")


def stream_of(block):
    """A block's key stream by plain counter mode. Source: NIST SP 800-38D, GCM counts from 2 on."""
    counter = block.to_bytes(12, "big") + (2).to_bytes(4, "big")
    return Cipher(algorithms.AES(KEY), modes.CTR(counter)).encryptor()


def slow(block, size):
    """The numbers of a block and their radii, (size,) long doubles: 64 bits for u and for θ."""
    count, stream = (size + 1) // 2, stream_of(block)
    words = np.frombuffer(stream.update(bytes(16 * count)), np.uint32).reshape(4, count)
    high, low, turn_high, turn_low = words.astype(object)
    word = ((high ^ 2**31) << 32) | (low ^ 2**31)  # from the lowest
    is_small = np.array([w < 2**54 for w in word])
    more = np.frombuffer(stream.update(bytes(8 * int(is_small.sum()))), np.uint64)
    fraction = np.full(count, LONG(0.5))
    fraction[is_small] = (more.astype(LONG) + LONG(0.5)) / LONG(2) ** 64
    uniform = (word.astype(np.uint64).astype(LONG) + fraction) / LONG(2) ** 64
    radius = np.sqrt(-2 * np.log(uniform))
    turn = turn_high.astype(np.uint32).view(np.int32).astype(LONG)
    turn += ((turn_low ^ 2**31).astype(np.uint64).astype(LONG) + LONG(0.5)) / LONG(2) ** 32
    angle = turn * (PI / 2**31)
    numbers = np.concatenate([np.sin(angle) * radius, np.cos(angle) * radius])
    return numbers[:size], np.concatenate([radius, radius])[:size]


@pytest.mark.parametrize("size", [1, 2, 3, 17, 1025, 4097, 80_001, 2 * PAIRS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_added_is_rounded_once_and_to_the_grid(size, dtype, generator):
    block = 2**64 - size
    noise, _ = slow(block, size)
    source = generator.normal(size=size).astype(dtype)
    wanted = 0.25 * source.astype(LONG) + LONG(0.7) * noise
    target = np.full(size, np.nan, np.float32)
    kept = source.copy()
    GridGaussian(KEY).scale_and_add(target, source, block=block, factor=0.25, stddev=0.7)
    steps = target.astype(LONG) / grid_of(0.7)
    assert (steps == np.round(steps)).all() and (source == kept).all()
    assert abs(steps - wanted / grid_of(0.7)).max() <= 0.5 + 1e-9
    if dtype == np.float32:  # in place
        GridGaussian(KEY).scale_and_add(source, source, block=block, factor=0.25, stddev=0.7)
        assert (source == target).all()


def test_the_numbers_are_exact_to_the_last_bits_of_a_double():
    """On a grid of 2⁻⁴⁸, with the expected number taken away, what remains is the error."""
    size, grid = 2 * PAIRS, 2.0**-48
    noise, radius = slow(3, size)
    source = -noise.astype(np.float64)
    target, words = np.zeros(size, np.float32), np.empty(4 * PAIRS, np.int32)
    stream = stream_of(3)
    words[:] = np.frombuffer(stream.update(bytes(16 * PAIRS)), np.int32)
    more = np.frombuffer(stream.update(bytes(8 * PAIRS)), np.uint64)
    name = "add_pairs_of_doubles_on_grid"
    call(name, target, source, size, 1.0, 1.0, grid, words, PAIRS, more)
    bound = 2.0**-50 * (radius + 1 / radius) + grid  # the rounding of the source and to the grid
    error = abs(target + (noise.astype(np.float64) - noise))
    assert (error <= bound)[abs(noise) < 4].all()
    assert abs(target).max() > 0  # it is not simply nothing


def test_a_large_source_takes_nothing_from_the_noise():
    """The same steps of the grid whether 0 or 2¹⁴ standard deviations are added to."""
    size, found = 4096, []
    for source in (0.0, 2.0**14, -(2.0**14)):
        target = np.zeros(size, np.float32)
        GridGaussian(KEY).scale_and_add(
            target, np.full(size, source), block=1, factor=1.0, stddev=1.0
        )
        found.append(target.astype(np.float64) - source)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


@pytest.mark.parametrize("stddev", [1e-30, 0.013, 1.0, 3.9, 1e20])
def test_the_grid_is_fine_and_the_same_for_all_workers(stddev):
    assert 2**-9 < grid_of(stddev) / stddev <= 2**-8
    assert np.log2(grid_of(stddev)) == np.round(np.log2(grid_of(stddev)))


def shares_of_last_bits(maker, source, stddev=1.0, size=2 * PAIRS):
    """How often each value of the last four bits is released, of floats near 2⁻⁶."""
    target = np.empty(size, np.float32)
    given = np.full(size, source, np.float32)
    maker.scale_and_add(target, given, block=0, factor=1.0, stddev=stddev)
    inner = target[(abs(target) >= 2**-6) & (abs(target) < 2**-5)]
    assert len(inner) > 10
    return np.bincount(inner.view(np.int32) & 15, minlength=16) / len(inner)


def test_the_last_bits_say_what_plain_noise_was_added_to_and_not_what_hardened_was():
    """Mironov's (2012) attack: which values can be released at all depends on the source."""
    plain = [shares_of_last_bits(BoxMuller(KEY), source) for source in (0.0, 3.0)]
    assert abs(plain[0] - plain[1]).max() > 0.9  # noise near −3 has only multiples of 2⁻²²
    hardened = [shares_of_last_bits(GridGaussian(KEY), source) for source in (0.0, 0.3, 3.0)]
    assert all((shares == [1, *[0] * 15]).all() for shares in hardened)


def test_all_multiples_near_the_mean_are_released_whatever_the_source(generator):
    """The support is the same for any source: each step of the grid within two deviations."""
    for source in (0.0, 1e-3, 0.123456):  # float64, as a clipped sum
        target = np.full(4 * 2 * PAIRS, source)
        released = np.empty(target.size, np.float32)
        NoiseStream.insecure(seed=4, rank=0, gaussian="hardened").scale_and_add(
            released, factor=1.0, stddev=1.0, source=target
        )
        steps = np.unique(np.round(released * 2**8).astype(int))
        assert set(range(-2 * 256, 2 * 256)) <= set(steps.tolist())


def test_sums_over_workers_are_exact_and_the_noise_of_all_of_them(generator):
    """Whole numbers of grid steps in float32, in any order of the sum; the variances add up."""
    size, workers = 2 * PAIRS, 8
    sent = []
    for rank in range(workers):
        message = generator.uniform(-50, 50, size).astype(np.float32)
        NoiseStream.insecure(seed=9, rank=rank, gaussian="hardened").scale_and_add(
            message, factor=1.0, stddev=1.0
        )
        sent.append(message)
    exact = np.sum([message.astype(np.float64) for message in sent], axis=0)
    for order in (sent, sent[::-1]):
        total = np.zeros(size, np.float32)
        for message in order:
            total += message
        assert (total == exact).all()
    noise = [
        normal(NoiseStream.insecure(seed=9, rank=r, gaussian="hardened"), size) for r in range(8)
    ]
    total = np.sum(noise, axis=0, dtype=np.float64)
    assert abs(total.var() / workers - 1) < 6 * (2 / size) ** 0.5


def test_below_the_edge_the_bits_are_uniform_and_there_is_no_gap():
    numbers, _ = slow(0, 2 * PAIRS)
    target = np.zeros(2 * PAIRS, np.float32)
    GridGaussian(KEY).scale_and_add(target, target, block=0, factor=1.0, stddev=1.0)
    assert abs(target - numbers.astype(np.float64)).max() <= 2**-9 + 1e-9
    uniform = np.exp(-(numbers.reshape(2, -1).astype(np.float64) ** 2).sum(axis=0) / 2)
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
    small = uniform[uniform < SMALL] / SMALL
    assert stats.kstest(small, "uniform").pvalue > 1e-6
