"""The numbers against a float64 Box–Muller from the same cipher, and the ends of the tail."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from edp_mx.dp.privacy import box_muller
from edp_mx.dp.privacy.box_muller import PAIRS, BoxMuller

KEY = bytes(range(32))
SMALL = 2.0**-10  # uniform numbers below it have more bits


class GivenBits:
    """Stands for the cipher: hands out given words, then given words that refine."""

    def __init__(self, words, more):
        self.words, self.more, self.used = np.array(words, np.uint32), more, 0

    def update_into(self, zeros, out):
        assert bytes(zeros) == bytes(self.words.nbytes)
        out[: self.words.nbytes] = self.words.tobytes()

    def update(self, zeros):
        self.used = len(zeros) // 8
        return np.array(self.more[: self.used], np.uint64).tobytes()


def slow(words, more):
    """(2, n) float64 from 2n words and, in their order, the bits of the small ones; also r."""
    low, turns = np.split(np.asarray(words, np.uint32), 2)
    low = low ^ np.uint32(2**31)  # signed, from the lowest
    more, uniform = iter(more), []
    for word in low.tolist():
        fraction = 0.5
        if word * 2.0**-32 + 2.0**-26 < SMALL:  # as it rounds
            fraction = (int(next(more)) + 0.5) / 2**64
        uniform.append((word + fraction) / 2**32)
    radius = np.sqrt(-2 * np.log(uniform))
    angle = turns.view(np.int32) * (np.pi / 2**31)
    return np.stack([np.sin(angle), np.cos(angle)]) * radius, radius


def pairs(maker, *, block, count):
    """The first pairs of a block, (2, count)."""
    numbers = np.zeros(2 * count, np.float32)
    maker.scale_and_add(numbers, numbers, block=block, factor=1.0, stddev=1.0)
    return numbers.reshape(2, count)


def assert_close(found, words, more):
    expected, radius = slow(words, more)
    bound = np.where(radius < 0.01, 3e-4, 1e-5)
    assert (abs(found - expected) < bound).all()


def stream_of(block):
    """A block's key stream by plain counter mode. Source: NIST SP 800-38D, GCM counts from 2 on."""
    counter = block.to_bytes(12, "big") + (2).to_bytes(4, "big")
    return Cipher(algorithms.AES(KEY), modes.CTR(counter)).encryptor()


@pytest.mark.parametrize("size", [1, 2, 3, 17, 4097, 80_001, 2 * PAIRS])
@pytest.mark.parametrize("block", [0, 5, 2**64 - 1])
def test_a_block_is_the_slow_form_of_its_own_key_stream(size, block, generator):
    half, count = size // 2, (size + 1) // 2
    stream = stream_of(block)
    words = np.frombuffer(stream.update(bytes(8 * count)), np.uint32)
    expected, radius = slow(words, np.frombuffer(stream.update(bytes(8 * count)), np.uint64))
    order = np.concatenate([np.arange(half), count + np.arange(half), np.arange(half, count)])
    bound = np.tile(np.where(radius < 0.01, 3e-4, 1e-5), 2)[order]
    source = generator.normal(size=size).astype(np.float32)
    wanted = 0.25 * source.astype(np.float64) + 0.5 * expected.ravel()[order]
    target = np.full(size, np.nan, np.float32)
    kept = source.copy()
    BoxMuller(KEY).scale_and_add(target, source, block=block, factor=0.25, stddev=0.5)
    assert (abs(target - wanted) < bound).all() and (source == kept).all()
    BoxMuller(KEY).scale_and_add(source, source, block=block, factor=0.25, stddev=0.5)  # in place
    assert (source == target).all()


@pytest.mark.parametrize("size", [1, 2, 17, 4097, 80_001])
def test_put_onto_doubles_it_is_rounded_once(size, generator):
    """What cancels in float64 is not lost: 2²⁵ + 1 − 2²⁵, which float32 does not have."""
    stream = BoxMuller(KEY)
    noise = np.zeros(size, np.float32)
    stream.scale_and_add(noise, np.zeros(size, np.float32), block=9, factor=1.0, stddev=0.5)
    source = generator.integers(-4, 4, size) * 2.0**22 + generator.normal(size=size)
    kept = source.copy()
    target = np.full(size, np.nan, np.float32)
    stream.scale_and_add(target, source, block=9, factor=0.3, stddev=0.5)
    wanted = 0.3 * source + noise
    assert (source == kept).all()
    room = np.spacing(np.abs(wanted).astype(np.float32)) * 0.51 + 1e-6 * np.abs(noise)
    assert (np.abs(target - wanted) <= room).all()


def test_the_ends_of_the_words_are_finite_and_right(monkeypatch):
    edge = int(SMALL * 2**32)
    low = [0, 0, 1, 2, edge - 200, edge + 200, 2**31 - 1, 2**31, 2**32 - 2**9, 2**32 - 1]
    turns = [0, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 1, 3 * 2**30, 2**29, 0, 2**31]
    more = [0, 2**64 - 1, 2**63, 1, 7]
    maker = BoxMuller(KEY)
    words = [word ^ 2**31 for word in low] + turns
    bits = GivenBits(words, more)
    monkeypatch.setattr(box_muller, "cipher_of", lambda key, block: bits)
    found = pairs(maker, block=0, count=len(low))
    assert bits.used == len(more)
    assert_close(found, words, more)
    assert 11.59 < abs(found).max() < 11.6  # u = 2⁻⁹⁷
    assert np.hypot(*found[:, -1]) == 0  # u = 1


def test_the_edge_of_the_small_ones_has_no_gap_and_no_overlap(monkeypatch):
    edge = int(SMALL * 2**32)
    low = np.arange(edge - 500, edge + 500)
    maker = BoxMuller(KEY)
    bits = GivenBits(np.append(low ^ 2**31, np.full(1000, 2**30)), [2**63] * 1000)
    monkeypatch.setattr(box_muller, "cipher_of", lambda key, block: bits)
    sines = pairs(maker, block=0, count=1000)[0]  # sin(π/2): the radius
    assert (np.diff(sines) <= 0).all() and 400 < bits.used < 600
    assert abs(np.diff(sines)).max() < 1e-5


def test_below_the_edge_the_bits_are_uniform():
    maker, small = BoxMuller(KEY), []
    for block in range(8):
        numbers = pairs(maker, block=block, count=PAIRS).astype(np.float64)
        uniform = np.exp(-(numbers**2).sum(axis=0) / 2)
        small.append(uniform[uniform < SMALL] / SMALL)
    assert stats.kstest(np.concatenate(small), "uniform").pvalue > 1e-6
    assert abs(np.concatenate(small).size - 8 * PAIRS * SMALL) < 5 * (8 * PAIRS * SMALL) ** 0.5
