"""Pairs of normal numbers from AES-256 in counter mode: one numbered block at a time."""

from __future__ import annotations

from typing import Tuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import (
    AEADEncryptionContext,
    Cipher,
    algorithms,
    modes,
)

from edp_mx.runtime.kernels import kernels

PAIRS = 1 << 17  # in a block: threads wait for each other less often than with smaller ones
SMALL = 2.0**-10  # a uniform number below it gets more bits
_ZEROS = memoryview(bytes(8 * PAIRS))  # encrypted, they are the key stream


class BoxMuller:
    """Makes any block of a key's endless sequence of normal numbers, in memory of its own.

    A pair is (r sin θ, r cos θ) · stddev with r = √(−2 ln u). Its 8 bytes are 32 bits for u and 32
    for θ; 64 more refine u where it is below 2⁻¹⁰, lest the tail be coarse or end early.

    Args:
        key: 32 secret bytes. Who has the same key makes the same blocks.

    Guarantee: u is uniform on [0, 1], to the next multiple of 2⁻²⁵ (2⁻²⁴ above one half); below
    2⁻¹⁰ it has 96 random bits and float32's precision. So each number is within 10⁻⁵ of one that is
    exactly normal (within 3·10⁻⁴ where r < 0.01, which one pair in 20,000 has). The distribution
    function is Φ to 10⁻⁶, each tail P(|y| > t) up to t = 8 is right to 10⁻⁴ of itself, and
    |y| ≤ 11.6, which a normal number exceeds with probability 10⁻³¹.

    Edge cases: not for two threads at once. Floating-point numbers are no real ones; that is
    outside ε, as everywhere.
    """

    def __init__(self, key: bytes) -> None:
        self._key = algorithms.AES(key)
        self._cipher = self._cipher_of(0)
        self._bytes = bytearray(8 * PAIRS + 15)  # `update_into` wants room for one more block
        self._words = np.frombuffer(self._bytes, np.int32, 2 * PAIRS)
        # An array each: where `sin` reads beside what it writes, NumPy takes its slow way.
        self._radius, self._angle = np.empty(PAIRS, np.float32), np.empty(PAIRS, np.float32)
        self._numbers = np.empty((2, PAIRS), np.float32)
        self._is_small = np.empty(PAIRS, np.bool_)

    def scale_and_add(
        self, target: np.ndarray, source: np.ndarray, *, block: int, factor: float, stddev: float
    ) -> None:
        """target ← factor · source + noise, by the compiled loop where there is one.

        Args:
            target: first the first numbers of the block's pairs, then the second ones.
            source: may be the target itself. Of a float64 one the sum is made in float64 and
                rounded once.
            block, stddev: see `pairs`.

        Shapes: contiguous (n,), n ≤ 2 · PAIRS; target float32, source float32 or float64.
        """
        compiled, half = kernels(), target.size // 2
        count = half + target.size % 2
        if compiled is not None:
            words, turns = self._key_stream(block, count)
            more = self._more(compiled.count_small(words))
            compiled.scale_and_add_pairs(
                target, source, factor=factor, stddev=stddev, words=words, turns=turns, more=more
            )
            return
        scaled = np.multiply(source, source.dtype.type(factor))  # (n,)
        numbers = self.pairs(block, count=count, stddev=stddev)  # (2, count)
        both, last = scaled[: 2 * half].reshape(2, half), scaled[2 * half :]  # views
        np.add(both, numbers[:, :half], out=target[: 2 * half].reshape(2, half))
        np.add(last, numbers[0, half:], out=target[2 * half :])  # of an odd size the last one

    def pairs(self, block: int, *, count: int, stddev: float) -> np.ndarray:
        """The first `count` pairs of a block, all of them independent, by NumPy.

        Args:
            block: its number, below 2⁶⁴. No other block has any of its key stream.
            count: at most PAIRS.
            stddev: what the numbers are multiplied by.

        Returns:
            The pairs' first and second numbers, (2, count) float32; valid until the next call.
        """
        words, turns = self._key_stream(block, count)  # (count,)
        radius, angle = self._radius[:count], self._angle[:count]  # (count,)
        numbers = self._numbers[:, :count]  # (2, count)

        _to_float32(words, 2.0**-32, radius)  # [−1/2, 1/2]
        np.add(radius, np.float32(0.5), out=radius)  # u
        self._refine(radius, words)
        np.log(radius, out=radius)
        np.multiply(radius, np.float32(-2), out=radius)
        np.sqrt(radius, out=radius)
        np.multiply(radius, np.float32(stddev), out=radius)

        _to_float32(turns, np.pi * 2.0**-31, angle)  # θ in [−π, π]
        np.sin(angle, out=numbers[0])
        np.cos(angle, out=numbers[1])
        return np.multiply(numbers, radius, out=numbers)

    def _key_stream(self, block: int, count: int) -> Tuple[np.ndarray, np.ndarray]:
        """32 bits for u and for θ of each pair, in memory that the next block takes. (count,)"""
        self._cipher = self._cipher_of(block)
        self._cipher.update_into(_ZEROS[: 8 * count], self._bytes)
        return self._words[:count], self._words[count : 2 * count]

    def _cipher_of(self, block: int) -> AEADEncryptionContext:
        """At the start of a block's key stream.

        GCM is counter mode, whose counter is a nonce and 32 bits, and a checksum, which is left: of
        both modes it is the faster one where a processor encrypts several blocks at once.
        """
        return Cipher(self._key, modes.GCM(block.to_bytes(12, "big"))).encryptor()

    def _more(self, count: int) -> np.ndarray:
        """64 more bits for each of the block's small u: uint64 (count,)."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), np.uint64)

    def _refine(self, uniform: np.ndarray, words: np.ndarray) -> None:
        """Give 64 more bits to each number below SMALL, in place; then none of them is zero."""
        is_small = np.less(uniform, np.float32(SMALL), out=self._is_small[: uniform.size])
        small = np.flatnonzero(is_small)  # one in a thousand
        if small.size:
            fractions = (self._more(small.size) + 0.5) * 2.0**-64  # (0, 1] float64
            uniform[small] = (words[small] + 2.0**31 + fractions) * 2.0**-32


def _to_float32(integers: np.ndarray, unit: float, out: np.ndarray) -> None:
    """out ← unit · integers, without an array in between."""
    np.multiply(integers, np.float32(unit), out=out, dtype=np.float32, casting="unsafe")
