"""Gaussian noise from a cryptographic stream of the worker's own."""

from __future__ import annotations

import hashlib
import os
from typing import Optional, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from edp_mx.errors import UserError

KEY_BYTES = 32
PAIRS = 1 << 15  # normal numbers made at once, in pairs: small enough for the second-level cache


class NoiseStream:
    """Independent standard normal numbers: AES-256 in counter mode, then Box–Muller.

    MXNet's generator starts every worker from the same constant seed; noise drawn from it is known
    to everyone. Here the key comes from the operating system, is never written down, and is never
    used again: a resumed run takes a new one (the same noise on two gradients reveals them both).

    Args:
        key: 32 secret bytes, another for each worker and each start.

    Attributes:
        fingerprint: of the key; it may be shown.
        mask_key: another secret, made from the key one way, for the masks of dropout.

    Units: the radius is made from 53 random bits, so that |y| ≤ 8.57; that the numbers are
    floating-point and not real is outside ε, as everywhere.
    """

    def __init__(self, *, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self.mask_key = hashlib.sha256(b"edp_mx dropout masks" + key).digest()
        self.fingerprint = hashlib.sha256(b"edp_mx noise key" + key).hexdigest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = bytes(12 * PAIRS)
        self._bytes = bytearray(12 * PAIRS + 15)  # `update_into` wants room for one more block

    @classmethod
    def from_operating_system(cls) -> NoiseStream:
        """A stream that nobody can repeat."""
        return cls(key=os.urandom(KEY_BYTES))

    @classmethod
    def insecure(cls, *, seed: int, rank: int) -> NoiseStream:
        """A repeatable stream, for tests only: who knows the seed can take the noise off again."""
        return cls(key=hashlib.sha256(f"edp_mx insecure noise {seed} {rank}".encode()).digest())

    def scale_and_add(
        self,
        array: np.ndarray,
        *,
        factor: float,
        stddev: float,
        source: Optional[np.ndarray] = None,
    ) -> None:
        """array ← factor · source + stddev · y, in place, with y ~ N(0, I) drawn anew.

        Args:
            array: contiguous float32 (n,).
            factor: what the source is multiplied by first.
            stddev: 0 draws nothing.
            source: (n,) float32, left as it is; the array itself where there is none.
        """
        if source is None:
            source = array
        if stddev == 0:
            np.multiply(source, np.float32(factor), out=array)
            return
        for start in range(0, array.size, 2 * PAIRS):
            part = array[start : start + 2 * PAIRS]  # (≤ 2 · PAIRS,)
            half = (part.size + 1) // 2
            sines, cosines = self._normal_pairs(half, stddev)
            np.multiply(source[start : start + 2 * PAIRS], np.float32(factor), out=part)
            part[:half] += sines
            part[half:] += cosines[: part.size - half]

    def normal(self, size: int) -> np.ndarray:
        """`size` standard normal numbers, float32."""
        values = np.zeros(size, np.float32)
        self.scale_and_add(values, factor=1.0, stddev=1.0)
        return values

    def _normal_pairs(self, count: int, stddev: float) -> Sequence[np.ndarray]:
        """Two independent normal arrays (count,) by Box–Muller, from 12 bytes a pair."""
        self._stream.update_into(self._zeros[: 12 * count], self._bytes)
        words = np.frombuffer(self._bytes, np.uint64, count)
        turns = np.frombuffer(self._bytes, np.int32, count, offset=8 * count)
        uniform = ((words >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # (0, 1]
        radius = np.sqrt(-2 * np.log(uniform)).astype(np.float32)
        radius *= np.float32(stddev)
        angle = turns * np.float32(np.pi * 2.0**-31)  # [−π, π)
        return np.sin(angle) * radius, np.cos(angle) * radius


def refuse_equal(fingerprints: Sequence[str]) -> None:
    """Refuses to train when two workers would draw the same noise.

    Raises:
        UserError: names the two ranks.
    """
    for rank, fingerprint in enumerate(fingerprints):
        first = list(fingerprints).index(fingerprint)
        if first != rank:
            raise UserError(
                f"workers {first} and {rank} have the same noise key: their noise would "
                "be identical and could be subtracted; start the workers anew"
            )
