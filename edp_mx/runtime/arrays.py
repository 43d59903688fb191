"""An NDArray's memory as a NumPy array, and values for a parameter."""

from __future__ import annotations

import ctypes

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.base import _LIB, check_call


def address(array: mx.nd.NDArray) -> int:
    """Return the memory address of an array's first element.

    MXNet first brings a weight that oneDNN keeps in an order of its own into the usual one.
    """
    pointer = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    return pointer.value or 0


class _Memory:
    """An array's memory by NumPy's array interface; a view of it keeps the array alive."""

    def __init__(self, array: mx.nd.NDArray) -> None:
        self._array = array
        self.__array_interface__ = {
            "data": (address(array), False),
            "shape": array.shape,
            "typestr": "<f4",
            "version": 3,
        }


def host_view(array: mx.nd.NDArray) -> np.ndarray:
    """Return a writable NumPy view of a float32 array on the CPU, without a copy.

    The view bypasses MXNet's engine: wait for pending work before using it.
    """
    return np.asarray(_Memory(array))


def to_numpy(array: mx.nd.NDArray) -> np.ndarray:
    """Return an array in NumPy: its memory if it is float32 on a CPU, a copy otherwise."""
    array.wait_to_read()
    return host_view(array) if has_view(array) else array.asnumpy()


def has_view(array: mx.nd.NDArray) -> bool:
    """Return whether an array has a `host_view`."""
    return array.context.device_type == "cpu" and array.dtype == np.float32


def overwrite(parameter: gluon.Parameter, values: np.ndarray) -> None:
    """Give a parameter new values.

    `set_data` alone fails for a weight that oneDNN has reordered: after a prediction, those of a
    convolution with 16 filters.
    """
    for array in parameter.list_data():
        address(array)
    parameter.set_data(mx.nd.array(values, dtype=parameter.dtype))
