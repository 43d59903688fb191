"""Secret random numbers: they decide who takes part in a step."""

from __future__ import annotations

import hashlib
import os
from typing import Optional

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32


class SecretWords:
    """A stream of 64-bit words: AES-256 in counter mode under a key of the operating system.

    Args:
        insecure_fixed_seed: makes the words repeatable, hence no secret; for tests only.
        use, rank, epoch: only repeatable words depend on them.

    Guarantee: each stream has a new key, which is never written down.
    """

    def __init__(
        self, use: str, *, insecure_fixed_seed: Optional[int], rank: int, epoch: int
    ) -> None:
        key = os.urandom(KEY_BYTES)
        if insecure_fixed_seed is not None:
            place = f"edp_mx insecure {use} {insecure_fixed_seed} {rank} {epoch}"
            key = hashlib.sha256(place.encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = b""

    def next(self, count: int) -> np.ndarray:
        """Return the next words, (count,) uint64."""
        if len(self._zeros) < 8 * count:
            self._zeros = bytes(8 * count)
        return np.frombuffer(self._stream.update(memoryview(self._zeros)[: 8 * count]), "<u8")
