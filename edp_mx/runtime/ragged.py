"""Rows of different lengths, kept one after the other in a flat array."""

from __future__ import annotations

from typing import Tuple

import numpy as np


def gathered(
    numbers: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some rows in a row, (n,), and where each begins, (rows,).

    Shapes: numbers (S,), the flat array; starts, lengths (rows,).
    """
    counts = lengths.astype(np.int64)
    begins = np.cumsum(counts) - counts  # (rows,)
    shifts = np.repeat(starts - begins, counts)  # (n,)
    shifts += np.arange(len(shifts))
    return numbers[shifts], begins
