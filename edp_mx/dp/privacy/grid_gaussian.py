"""Normal numbers in double precision, added on a grid: noise whose last bits reveal nothing."""

from __future__ import annotations

import math

import numpy as np
from cryptography.hazmat.primitives.ciphers import algorithms

from edp_mx.dp.privacy.box_muller import PAIRS, cipher_of
from edp_mx.runtime.kernels import call

FINENESS = 8  # the grid is 2⁻⁸ of the standard deviation, or up to twice as fine
_ZEROS = memoryview(bytes(16 * PAIRS))  # encrypted, they are the key stream


def grid_of(stddev: float) -> float:
    """Return the grid's step for noise of this standard deviation, a power of two.

    Example:
        >>> grid_of(1.0) == grid_of(1.99) == 2**-8, grid_of(0.99) == 2**-9
        (True, True)
    """
    _, exponent = math.frexp(stddev)  # 2^(exponent − 1) ≤ stddev < 2^exponent
    return math.ldexp(1.0, exponent - 1 - FINENESS)


class GridGaussian:
    """Blocks of noise like `box_muller.BoxMuller`'s, with 128 random bits for a pair.

    A sum with noise is computed in float64 and rounded to the next multiple of `grid_of(stddev)`.

    Args:
        key: 32 secret bytes. The same key makes the same blocks.

    Guarantee: with r the radius of its pair, each normal number is within 2⁻⁵⁰ (r + 1/r) of one
        that is exactly normal; |y| ≤ 13.4. What is released is a multiple of the grid whatever the
        source, so that no bit below the grid depends on it, and each multiple has the probability
        that an exactly normal number would give it, but for a factor whose logarithm has a mean
        square below 2⁻⁷². `docs/privacy.md`, section 10, says what follows for ε. A multiple of
        up to 2²⁴ steps, and a sum over workers of up to so many, is exact in float32.

    Edge cases: one object must not be used by two threads at once. The time that a block takes
        depends on how many of its numbers are in the tails, by nanoseconds each.
    """

    def __init__(self, key: bytes) -> None:
        self._key = algorithms.AES(key)
        self._bytes = bytearray(16 * PAIRS + 15)  # `update_into` wants room for one more block
        self._words = np.frombuffer(self._bytes, np.int32, 4 * PAIRS)

    def scale_and_add(
        self, target: np.ndarray, source: np.ndarray, *, block: int, factor: float, stddev: float
    ) -> None:
        """Set target ← factor · source + noise of this standard deviation, rounded to the grid.

        The target gets the first numbers of the block's pairs, then their second numbers. No other
        block, below 2⁶⁴, shares any of its key stream. The source may be the target.

        Shapes: contiguous (n,), n ≤ 2 · PAIRS; target float32, source float32 or float64.
        """
        pairs, cipher = (target.size + 1) // 2, cipher_of(self._key, block)
        cipher.update_into(_ZEROS[: 16 * pairs], self._bytes)
        words = self._words[: 4 * pairs]  # for u and for θ, each high words and then low ones
        small = call("count_small_words", words, pairs)
        more = np.frombuffer(cipher.update(bytes(8 * small)), np.uint64)
        name = f"add_pairs{'_of_doubles' * (source.dtype == np.float64)}_on_grid"
        numbers = factor, stddev, grid_of(stddev)
        call(name, target, source, target.size, *numbers, words, pairs, more)
