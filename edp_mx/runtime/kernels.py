"""Compiled loops (`kernels.c`), where NumPy would pass over memory many times."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Optional

import numpy as np

from edp_mx.runtime.compiled import open_library

VERSION = 8  # of the functions' arguments; `kernels.c` has the same number
_TYPES = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double}
_SIGNATURES = {  # result and arguments
    "version": ("l", ""),
    "count_small": ("l", "pl"),
    "count_small_words": ("l", "pl"),  # this and the next two: `dp/privacy/grid_noise.c`
    "add_pairs_on_grid": ("", "ppldddplp"),
    "add_pairs_of_doubles_on_grid": ("", "ppldddplp"),
    "scale_and_add_pairs": ("", "pplffppp"),
    "scale_and_add_pairs_of_doubles": ("", "ppldfppp"),
    "add_to_doubles": ("", "ppld"),
    "sum_of_squares": ("d", "pl"),
    "gram": ("", "plllllp"),
    "lstm_cell": ("", "ppppllpppl"),
    "lstm_cell_backward": ("", "pppplplllpp"),
    "adam": ("", "pppplffffff"),
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
            function.restype = _TYPES.get(result)
            function.argtypes = [_TYPES[letter] for letter in arguments]

    def call(self, name: str, *values: Any) -> Any:
        """Call a function with the addresses of arrays, and a null pointer for None."""
        taken = (v.ctypes.data if isinstance(v, np.ndarray) else v for v in values)
        return getattr(self._library, name)(*taken)

    def count_small(self, words: np.ndarray) -> int:
        """Count the 32-bit words whose uniform number is below 2⁻¹⁰. Shapes: int32 (n,)."""
        return self.call("count_small", words, words.size)

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
            words: 32 random bits for u.
            turns: 32 random bits for θ.
            more: 64 more bits for each u that `count_small` counts, in their order.

        Shapes: target, source (n,); words, turns int32 (⌈n/2⌉,); more uint64.
        """
        name = f"scale_and_add_pairs{'_of_doubles' * (source.dtype == np.float64)}"
        self.call(name, target, source, target.size, factor, stddev, words, turns, more)

    def add_to_doubles(self, total: np.ndarray, values: np.ndarray, *, factor: float) -> None:
        """Set total ← total + factor · values. Shapes: total float64 (n,), values (n,)."""
        self.call("add_to_doubles", total, values, values.size, factor)

    def sum_of_squares(self, values: np.ndarray) -> float:
        """Sum the squares in float32 blocks of 128, and the blocks in float64. Shapes: any."""
        return self.call("sum_of_squares", values, values.size)

    def gram(self, values: np.ndarray) -> np.ndarray:
        """Return the inner products of each example's rows, whose floats are contiguous.

        NumPy's calls a library for each example, whose preparations take longer than the products
        of a few dozen rows. Shapes: (N, T, d) → (N, T, T).
        """
        (num_examples, num_rows, _), (example, row, _) = values.shape, values.strides
        made = np.empty((num_examples, num_rows, num_rows), np.float32)
        self.call("gram", values, *values.shape, example // 4, row // 4, made)
        return made

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
            recurrent: the contribution of the states before.
            before: the cells before.
            cells: filled with the cells.
            squashed: filled with their tanh.
            states: filled with the states.

        Shapes: gates, recurrent (n, 4H) · bias (4H,) · before, cells, squashed, states (n, H); the
        rows of states may lie apart.
        """
        sizes = len(gates), gates.shape[1] // 4
        filled = cells, squashed, states, states.strides[0] // 4
        self.call("lstm_cell", gates, recurrent, bias, before, *sizes, *filled)

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
        arriving = heads, heads.strides[0] // 4, later, 0 if later is None else len(later)
        sizes = len(gates), gates.shape[1] // 4
        self.call("lstm_cell_backward", gates, before, squashed, *arriving, *sizes, cells, out)

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
        factors = rate, beta1, beta2, eps, rescale, decay
        self.call("adam", weight, gradient, mean, variance, weight.size, *factors)


@lru_cache(maxsize=None)
def kernels() -> Kernels:
    """Return the compiled loops; refuse a library that cannot be used."""
    return Kernels()
