"""All weights in one array and all gradients in another; the parameters become views of them."""

from __future__ import annotations

import ctypes
from typing import Dict, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.base import _LIB, check_call

from edp_mx.errors import UserError
from edp_mx.privacy.layers import Layer

ALIGNMENT = 16  # floats: every parameter starts on a 64-byte cache line
SUM_BLOCK = 4096  # floats summed in float32 before float64 takes over


class FlatParameters:
    """One float32 array of weights and one of gradients behind a network's trainable parameters.

    Norms, clipping, noise, all-reduce and Adam are then single passes over memory, while Gluon
    goes on as before, because each parameter's own arrays are views.

    Args:
        layers: what `layers_of(network)` returned, initialised, all on one device.

    Attributes:
        parameter: a Gluon parameter (P,) whose data and gradient are the flat arrays.
        layers: the layers, in the order of the array.
        segments: for each layer the slice of the flat array that holds it (with its padding).

    Edge cases: setting `grad_req`, casting, moving or re-initialising a parameter silently cuts
    its view; `check_views` notices and refuses. The gaps between parameters belong to none of
    them and are set to zero before each use, lest their noise adds up over the steps.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self._places: Dict[str, Tuple[gluon.Parameter, int, int]] = {}
        self.segments: List[slice] = []
        self._gaps: List[slice] = []
        offset = 0
        for layer in self.layers:
            start = offset
            for parameter in layer.parameters:
                size = int(np.prod(parameter.shape))
                self._places[parameter.name] = (parameter, offset, size)
                offset += -(-size // ALIGNMENT) * ALIGNMENT
                self._gaps.append(slice(self._places[parameter.name][1] + size, offset))
            self.segments.append(slice(start, offset))
        self.size = offset
        self.context = self.layers[0].parameters[0].list_ctx()[0]
        self.parameter = gluon.Parameter("edp_mx_flat", shape=(offset,))
        self.parameter.initialize(mx.init.Zero(), ctx=self.context)
        self._weights = self.parameter.data()  # (P,)
        self._gradients = self.parameter.grad()  # (P,)
        self._attach()

    def _attach(self) -> None:
        for parameter, offset, size in self._places.values():
            weights = self._weights[offset : offset + size].reshape(parameter.shape)
            gradients = self._gradients[offset : offset + size].reshape(parameter.shape)
            weights[:] = parameter.data()
            parameter._data, parameter._grad = [weights], [gradients]
            autograd.mark_variables(parameter._data, parameter._grad, parameter.grad_req)
        mx.nd.waitall()

    def check_views(self) -> None:
        """Refuses to go on when a parameter no longer shares memory with the flat arrays.

        Raises:
            UserError: the parameter is named.
        """
        weights, gradients = address(self._weights), address(self._gradients)
        for parameter, offset, _ in self._places.values():
            if (address(parameter._data[0]) != weights + 4 * offset
                    or address(parameter._grad[0]) != gradients + 4 * offset):
                raise UserError(f"{parameter.name} was re-initialised, cast or moved after training "
                                "was set up: its gradient would escape the clipping")

    def take_fresh(self) -> None:
        """Marks the gradients as used.

        Raises:
            UserError: a parameter has no gradient newer than the last step, so that a gradient
                would be released twice.
        """
        stale = [name for name, (p, _, _) in self._places.items() if not p._data[0]._fresh_grad]
        if stale:
            raise UserError(f"{stale[0]} (and {len(stale) - 1} more) has no new gradient since the "
                            "last step: one gradient may be released only once; call backward() "
                            "before each step, and freeze what the loss does not use")
        for parameter, _, _ in self._places.values():
            parameter._data[0]._fresh_grad = False
        self._weights._fresh_grad = True  # what Trainer looks at

    def mark_fresh(self) -> None:
        """Declares the gradients new although no backward pass ran (they were set to zero)."""
        for parameter, _, _ in self._places.values():
            parameter._data[0]._fresh_grad = True

    def gradients(self) -> np.ndarray:
        """The gradients as one float32 NumPy array (P,), after all pending work is done.

        On the CPU this is the memory itself; on a GPU a copy, to be given back to `put_gradients`.
        """
        self.check_views()
        mx.nd.waitall()
        on_cpu = self.context.device_type == "cpu"
        gradients = host_view(self._gradients) if on_cpu else self._gradients.asnumpy()
        for gap in self._gaps:
            gradients[gap] = 0
        return gradients

    def put_gradients(self, gradients: np.ndarray) -> None:
        """Gives back what `gradients` returned; nothing to do where it was the memory itself."""
        if self.context.device_type != "cpu":
            self._gradients[:] = mx.nd.array(gradients, ctx=self.context)

    def squared_norms(self, gradients: np.ndarray) -> np.ndarray:
        """Squared L2 norm of each layer's part of a flat array: (L,) float64, exact to 1e-6."""
        return np.array([
            sum(sum_of_squares(gradients[offset : offset + size])
                for _, offset, size in (self._places[p.name] for p in layer.parameters))
            for layer in self.layers])


def sum_of_squares(values: np.ndarray) -> float:
    """Sum of the squares of a float32 array, in blocks, the blocks' sums in float64.

    MXNet's own norms add up in float32 and come out low for large arrays, which would let more
    than C through the clipping.

    Example:
        >>> sum_of_squares(np.full(10_000, 2, np.float32))
        40000.0
    """
    values = values.ravel()
    whole = values.size - values.size % SUM_BLOCK
    blocks = values[:whole].reshape(-1, SUM_BLOCK)  # (n, SUM_BLOCK)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.einsum("ij,ij->i", blocks, blocks)  # (n,)
        rest = np.dot(values[whole:].astype(np.float64), values[whole:].astype(np.float64))
    return float(sums.sum(dtype=np.float64) + rest)


def address(array: mx.nd.NDArray) -> int:
    """Where an array's first element lies in memory."""
    pointer = ctypes.c_void_p()
    check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    return pointer.value or 0


def host_view(array: mx.nd.NDArray) -> np.ndarray:
    """A writable NumPy view (no copy) of a float32 CPU array.

    The view does not keep the array alive and bypasses MXNet's engine: wait before using it.
    """
    pointer = ctypes.cast(address(array), ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(pointer, shape=array.shape)
