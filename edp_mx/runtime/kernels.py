"""Compiled loops (`kernels.c`), where NumPy would pass over memory many times."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Optional

import numpy as np

from edp_mx.runtime.compiled import open_library

VERSION = 6  # of the functions' arguments; `kernels.c` has the same number
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
_FLOAT, _DOUBLE = ctypes.c_float, ctypes.c_double
_SIGNATURES = {
    "version": (_LONG, ()),
    "count_small": (_LONG, (_POINTER, _LONG)),
    "scale_and_add_pairs": (None, (*2 * (_POINTER,), _LONG, *2 * (_FLOAT,), *3 * (_POINTER,))),
    "scale_and_add_pairs_of_doubles": (
        None,
        (*2 * (_POINTER,), _LONG, _DOUBLE, _FLOAT, *3 * (_POINTER,)),
    ),
    "add_to_doubles": (None, (*2 * (_POINTER,), _LONG, _DOUBLE)),
    "sum_of_squares": (_DOUBLE, (_POINTER, _LONG)),
    "lstm_cell": (None, (*4 * (_POINTER,), *2 * (_LONG,), *3 * (_POINTER,), _LONG)),
    "lstm_cell_backward": (
        None,
        (*4 * (_POINTER,), _LONG, _POINTER, *3 * (_LONG,), *2 * (_POINTER,)),
    ),
    "adam": (None, (*4 * (_POINTER,), _LONG, *6 * (_FLOAT,))),
}


class Kernels:
    """The functions of the compiled library, which believes the arrays' sizes: callers check them.

    All arrays are contiguous, and float32 unless said otherwise.
    """

    def __init__(self) -> None:
        self._library, _ = open_library(
            "edp_mx.runtime._kernels", version=VERSION, function="version"
        )
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments

    def count_small(self, words: np.ndarray) -> int:
        """Count the 32-bit words whose uniform number is below 2⁻¹⁰. Shapes: int32 (n,)."""
        return self._library.count_small(words.ctypes.data, words.size)

    def scale_and_add_pairs(
        self,
        target: np.ndarray,
        source: np.ndarray,
        *,
        factor: float,
        stddev: float,
        words: np.ndarray,
        turns: np.ndarray,
        more: np.ndarray,
    ) -> None:
        """Set target ← factor · source + stddev · y, with y as `box_muller.BoxMuller` defines it.

        Args:
            target: its first half gets the first numbers of the pairs, the rest the second ones;
                of an odd size the last place gets the first number of the last pair.
            source: may be the target itself; with float64 the sum is made in float64, rounded once.
            words, turns: 32 random bits for u and for θ.
            more: 64 more bits for each u that `count_small` counts, in their order.

        Shapes: target, source (n,); words, turns int32 (⌈n/2⌉,); more uint64.
        """
        suffix = "_of_doubles" if source.dtype == np.float64 else ""
        getattr(self._library, f"scale_and_add_pairs{suffix}")(
            target.ctypes.data,
            source.ctypes.data,
            target.size,
            factor,
            stddev,
            words.ctypes.data,
            turns.ctypes.data,
            more.ctypes.data,
        )

    def add_to_doubles(self, total: np.ndarray, values: np.ndarray, *, factor: float) -> None:
        """Set total ← total + factor · values. Shapes: total float64 (n,), values (n,)."""
        pointers = (array.ctypes.data for array in (total, values))
        self._library.add_to_doubles(*pointers, values.size, factor)

    def sum_of_squares(self, values: np.ndarray) -> float:
        """Sum the squares in float32 blocks of 128, and the blocks in float64. Shapes: any."""
        return self._library.sum_of_squares(values.ctypes.data, values.size)

    def lstm_cell(
        self,
        gates: np.ndarray,
        recurrent: Optional[np.ndarray],
        bias: np.ndarray,
        before: Optional[np.ndarray],
        *,
        cells: np.ndarray,
        squashed: np.ndarray,
        states: np.ndarray,
    ) -> None:
        """Take one step of an LSTM without its matrix products.

        Args:
            gates: the inputs' contribution (input, forget, cell, output gate); overwritten with the
                gates after their activations.
            recurrent, before: the contribution of the states before, and the cells before.
            cells, squashed, states: filled with the cells, their tanh, and the states.

        Shapes: gates, recurrent (n, 4H) · bias (4H,) · before, cells, squashed, states (n, H); the
        rows of states may lie apart.
        Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000.
        """
        self._library.lstm_cell(
            gates.ctypes.data, _address(recurrent), bias.ctypes.data, _address(before),
            len(gates), gates.shape[1] // 4, cells.ctypes.data, squashed.ctypes.data,
            states.ctypes.data, states.strides[0] // 4,
        )  # fmt: skip

    def lstm_cell_backward(
        self,
        gates: np.ndarray,
        before: Optional[np.ndarray],
        squashed: np.ndarray,
        heads: np.ndarray,
        later: Optional[np.ndarray],
        *,
        cells: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Take one step of an LSTM backwards, without its matrix products.

        Args:
            heads: the gradients of the states.
            later: what the following step adds to those of the first m examples.
            cells: the gradients of the cells; overwritten with those of the cells before.
            out: filled with the gradients of the gates before their activations.

        Shapes: gates, out (n, 4H) · before, squashed, heads, cells (n, H) · later (m, H), m ≤ n;
        the rows of heads may lie apart.
        """
        self._library.lstm_cell_backward(
            gates.ctypes.data, _address(before), squashed.ctypes.data, heads.ctypes.data,
            heads.strides[0] // 4, _address(later), 0 if later is None else len(later),
            len(gates), gates.shape[1] // 4, cells.ctypes.data, out.ctypes.data,
        )  # fmt: skip

    def adam(
        self,
        weight: np.ndarray,
        gradient: np.ndarray,
        mean: np.ndarray,
        variance: np.ndarray,
        *,
        rate: float,
        beta1: float,
        beta2: float,
        eps: float,
        rescale: float,
        decay: float,
    ) -> None:
        """Take one step of Adam in place, as MXNet's `adam_update` does. Shapes: (n,) each."""
        pointers = (array.ctypes.data for array in (weight, gradient, mean, variance))
        self._library.adam(*pointers, weight.size, rate, beta1, beta2, eps, rescale, decay)


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    """Return the address of an array, and a null pointer for None."""
    return None if array is None else array.ctypes.data


@lru_cache(maxsize=None)
def kernels() -> Kernels:
    """Return the compiled loops; refuse a library that cannot be used."""
    return Kernels()
