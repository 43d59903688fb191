"""Sums of large float32 arrays in float64, at no cost for a sum of one array."""

from __future__ import annotations

from functools import partial
from typing import Optional, Tuple

import numpy as np

from edp_mx.runtime.kernels import call
from edp_mx.runtime.threads import allowed_threads, in_threads

PIECE = 1 << 18  # floats that a thread adds at once


class RunningSum:
    """Σ_i factor_i · x_i, (P,), where each array is added only when the next one arrives.

    In float32 one term may round many others away, and would then move a sum of clipped gradients
    by more than its own norm. A single array is never added, so that it costs nothing.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._total: Optional[np.ndarray] = None  # (P,) float64, made when it is needed
        self.clear()

    def clear(self) -> None:
        self._pending: Optional[Tuple[np.ndarray, float]] = None
        self._is_begun = False  # whether `_total` has terms of this sum

    def put(self, values: np.ndarray, *, factor: float) -> None:
        """Take the next term, finite if its factor is 0; it is read by `settle` or `result`."""
        assert self._pending is None, "the term before would be lost: settle() first"
        self._pending = values, factor

    def settle(self) -> None:
        """Add the last term, whose array may then be overwritten."""
        if self._pending is None:
            return
        (values, factor), self._pending = self._pending, None
        if self._total is None:
            self._total = np.zeros(self._size)  # (P,)
        elif not self._is_begun:
            self._total.fill(0)
        self._is_begun = True
        add_scaled(self._total, values, factor=factor)

    def result(self) -> Tuple[np.ndarray, float]:
        """Return the sum and the factor still due on it; valid until the next call."""
        if not self._is_begun:
            assert self._pending is not None, "a sum of nothing"
            return self._pending
        self.settle()
        assert self._total is not None
        return self._total, 1.0


def add_scaled(total: np.ndarray, values: np.ndarray, *, factor: float) -> None:
    """total += factor · values, in place, in float64. Shapes: (P,) float64, (P,) float32."""
    starts = range(0, total.size, PIECE)
    threads = allowed_threads() if len(starts) > 1 else 1
    in_threads(partial(_add_piece, total, values, factor), starts, threads=threads)


def _add_piece(total: np.ndarray, values: np.ndarray, factor: float, start: int) -> None:
    piece = slice(start, start + PIECE)
    call("add_to_doubles", total[piece], values[piece], values[piece].size, factor)
