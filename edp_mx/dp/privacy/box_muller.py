"""Pairs of normal numbers from AES-256 in counter mode: one numbered block at a time."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher, algorithms, modes

from edp_mx.runtime.kernels import call

PAIRS = 1 << 17  # in a block: threads wait for each other less often than with smaller ones
_ZEROS = memoryview(bytes(8 * PAIRS))  # encrypted, they are the key stream


def cipher_of(key: algorithms.AES, block: int) -> AEADEncryptionContext:
    """Return a cipher at the start of a block's key stream.

    GCM is counter mode with a nonce and 32 bits as its counter, and a checksum, which is not read.
    It is faster than plain CTR on processors that encrypt several blocks at once.
    """
    return Cipher(key, modes.GCM(block.to_bytes(12, "big"))).encryptor()


class BoxMuller:
    """The blocks of a key's endless sequence of normal numbers, each made on its own.

    A pair is (r sin θ, r cos θ) · stddev with r = √(−2 ln u). Its 8 bytes are 32 bits for u and 32
    for θ; 64 more refine u where it is below 2⁻¹⁰, lest the tail be coarse or end early.

    Args:
        key: 32 secret bytes. The same key makes the same blocks.

    Guarantee: u is uniform on [0, 1], to the next multiple of 2⁻²⁵ (2⁻²⁴ above one half); below
    2⁻¹⁰ it has 96 random bits and float32's precision. So each number is within 10⁻⁵ of one that is
    exactly normal (within 3·10⁻⁴ where r < 0.01, which one pair in 20,000 has). The distribution
    function is Φ to 10⁻⁶, each tail P(|y| > t) up to t = 8 is right to 10⁻⁴ of itself, and
    |y| ≤ 11.6, which a normal number exceeds with probability 10⁻³¹.

    Edge cases: one object must not be used by two threads at once. Floating-point numbers are not
    real numbers; ε does not cover the difference.
    """

    def __init__(self, key: bytes) -> None:
        self._key = algorithms.AES(key)
        self._bytes = bytearray(8 * PAIRS + 15)  # `update_into` wants room for one more block
        self._words = np.frombuffer(self._bytes, np.int32, 2 * PAIRS)

    def scale_and_add(
        self, target: np.ndarray, source: np.ndarray, *, block: int, factor: float, stddev: float
    ) -> None:
        """Set target ← factor · source + noise of this standard deviation, which the source may be.

        The target gets the first numbers of the block's pairs, then their second numbers. No other
        block, below 2⁶⁴, shares any of its key stream. The sum is made in the source's type.

        Shapes: contiguous (n,), n ≤ 2 · PAIRS; target float32, source float32 or float64.
        """
        pairs, cipher = (target.size + 1) // 2, cipher_of(self._key, block)
        cipher.update_into(_ZEROS[: 8 * pairs], self._bytes)
        words, turns = self._words[:pairs], self._words[pairs : 2 * pairs]
        more = np.frombuffer(cipher.update(bytes(8 * call("count_small", words, pairs))), np.uint64)
        name = f"scale_and_add_pairs{'_of_doubles' * (source.dtype == np.float64)}"
        call(name, target, source, target.size, factor, stddev, words, turns, more)
