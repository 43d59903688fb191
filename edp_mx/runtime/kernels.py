"""Compiled loops (`kernels.c`), where NumPy would pass over memory many times.

They are built with the package where there is a C compiler. Without one NumPy makes the noise,
the norms and an LSTM's cell, and MXNet takes Adam's step, slower; the tests hold one against the
other.
"""

from __future__ import annotations

import ctypes
import logging
from functools import lru_cache
from importlib.util import find_spec
from typing import Optional

import numpy as np

logger = logging.getLogger(__name__)

VERSION = 6  # of the functions' arguments; `kernels.c` has it too
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
    """The functions of the compiled library. All arrays are float32 where nothing else is said,
    contiguous, and their sizes are believed: what calls this has checked them.

    Args:
        path: of the library.

    Raises:
        OSError: it is not for this machine.
        AttributeError: it was built from an older source.
    """

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)  # lets other threads run while it works
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        if self._library.version() != VERSION:
            raise AttributeError(f"version {self._library.version()}, not {VERSION}")

    def count_small(self, words: np.ndarray) -> int:
        """How many of these 32 bits make a number below `box_muller.SMALL`. Shapes: int32 (n,)."""
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
        """target ← factor · source + stddev · y; y is what `box_muller.BoxMuller` says.

        Args:
            target: its first half gets the first numbers of the pairs, the rest the second ones;
                of an odd size the last place gets the first number of the last pair.
            source: as large; may be the target itself. Of a float64 one the sum is made in float64
                and rounded once.
            words, turns: 32 bits for u and for θ.
            more: 64 more bits for each u that `count_small` counts, in their order.

        Shapes: target (n,); source (n,), float32 or float64; words, turns int32 (⌈n/2⌉,); more
        uint64.
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
        """total ← total + factor · values. Shapes: total float64 (n,), values (n,)."""
        pointers = (array.ctypes.data for array in (total, values))
        self._library.add_to_doubles(*pointers, values.size, factor)

    def sum_of_squares(self, values: np.ndarray) -> float:
        """Of an array, in blocks, the blocks' sums in float64. Shapes: any."""
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
        """`lstm_cell.Cell.forward`. Shapes: see there; rows of `states` may lie apart."""
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
        """`lstm_cell.Cell.backward`. Shapes: see there; rows of `heads` may lie apart."""
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
        """One step of Adam as MXNet's `adam_update` takes it, in place. Shapes: (n,) each."""
        pointers = (array.ctypes.data for array in (weight, gradient, mean, variance))
        self._library.adam(*pointers, weight.size, rate, beta1, beta2, eps, rescale, decay)


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    """Nothing stays nothing: a null pointer."""
    return None if array is None else array.ctypes.data


@lru_cache(maxsize=None)
def kernels() -> Optional[Kernels]:
    """The compiled library; None where it was not built."""
    spec = find_spec("edp_mx.runtime._kernels")
    try:
        return Kernels(spec.origin) if spec is not None and spec.origin else None
    except (OSError, AttributeError) as error:
        logger.warning("the compiled loops cannot be used (%s): run launch/setup.sh", error)
        return None
