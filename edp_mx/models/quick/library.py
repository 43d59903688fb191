"""Our operators (`native`), registered with MXNet."""

from __future__ import annotations

import ctypes
from functools import lru_cache

import mxnet as mx
from mxnet.base import _LIB, OpHandle, c_str, check_call
from mxnet.ndarray.register import _make_ndarray_function
from mxnet.symbol.register import _make_symbol_function

from edp_mx.runtime.compiled import open_library, unusable

VERSION = 3  # of the operators' arguments; `native/operators.cc` has the same number
NAMES = ("edp_attention", "edp_dropout", "edp_first_max", "edp_gelu", "edp_layer_norm")


@lru_cache(maxsize=None)
def load_operators() -> None:
    """Add our operators to `mx.nd` and `mx.sym`; `mx.library.load` makes all of MXNet's again."""
    _, path = open_library(
        "edp_mx.models.quick._operators", version=VERSION, function="edp_version"
    )
    try:
        check_call(_LIB.MXLoadLib(c_str(str(path)), mx.base.mx_uint(0)))
    except mx.MXNetError as error:
        raise unusable(str(path), error) from error
    for name in NAMES:
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        setattr(mx.nd, name, _make_ndarray_function(handle, name, name))
        setattr(mx.sym, name, _make_symbol_function(handle, name, name))
