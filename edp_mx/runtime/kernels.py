"""Compiled loops (`kernels.c`), where NumPy would pass over memory many times."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

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


def call(name: str, *values: Any) -> Any:
    """Call a loop with the addresses of arrays, and a null pointer for None.

    `kernels.c` says what each takes. It believes the sizes: callers check them. All arrays are
    contiguous, and float32 unless said otherwise.
    """
    taken = (v.ctypes.data if isinstance(v, np.ndarray) else v for v in values)
    return getattr(kernels(), name)(*taken)


@lru_cache(maxsize=None)
def kernels() -> ctypes.CDLL:
    """Return the compiled loops; refuse a library that cannot be used."""
    library, _ = open_library("edp_mx.runtime._kernels", version=VERSION, function="version")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = _TYPES.get(result)
        function.argtypes = [_TYPES[letter] for letter in arguments]
    return library
