"""Our operators (`native`), built with the package, as MXNet knows them."""

from __future__ import annotations

import ctypes
import logging
from functools import lru_cache
from importlib.util import find_spec

import mxnet as mx
from mxnet.base import _LIB, OpHandle, c_str, check_call
from mxnet.ndarray.register import _make_ndarray_function
from mxnet.symbol.register import _make_symbol_function

logger = logging.getLogger(__name__)

VERSION = 2  # of the operators' arguments; `native/operators.cc` has it too
NAMES = ("edp_attention", "edp_dropout", "edp_first_max", "edp_layer_norm")


@lru_cache(maxsize=None)
def are_loaded() -> bool:
    """Whether `mx.nd` and `mx.sym` have our operators; loads them at the first call.

    They are missing where there was no C++ compiler, or the library is not this version's: all
    goes on with MXNet's own, slower.
    """
    found = find_spec("edp_mx.models.quick._operators")
    if found is None or found.origin is None:
        logger.debug("no operators of our own: there was no C++ compiler")
        return False
    try:
        _load(found.origin)
    except (OSError, AttributeError, mx.MXNetError) as error:
        logger.warning(
            "the operators at %s cannot be used (%s): a step takes longer; run launch/setup.sh",
            found.origin,
            str(error).strip().splitlines()[-1],
        )
        return False
    return True


def _load(path: str) -> None:
    """Does what `mx.library.load` does, which makes all of MXNet's operators anew: for a second.

    Raises:
        OSError: it is not for this machine.
        AttributeError: it was built from an older source.
        MXNetError: it is not for this MXNet.
    """
    version = ctypes.CDLL(path).edp_version()
    if version != VERSION:
        raise AttributeError(f"version {version}, not {VERSION}")
    check_call(_LIB.MXLoadLib(c_str(path), mx.base.mx_uint(0)))
    for name in NAMES:
        handle = OpHandle()
        check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
        setattr(mx.nd, name, _make_ndarray_function(handle, name, name))
        setattr(mx.sym, name, _make_symbol_function(handle, name, name))
