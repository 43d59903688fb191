"""All gradients in one array, of which the parameters' own gradients are views."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.dp.privacy.layers import Layer
from edp_mx.errors import UserError
from edp_mx.runtime.arrays import address, host_view
from edp_mx.runtime.kernels import call
from edp_mx.runtime.threads import allowed_threads, in_threads

ALIGNMENT = 16  # floats: every parameter starts on a 64-byte cache line
CHUNK = 1 << 18  # floats whose squares a thread sums at once
# A sum of squares below it may have lost terms to the range of float32.
LEAST_SAFE_SQUARES = 1e-24


class FlatGradients:
    """One float32 array behind the gradients of a network's trainable parameters.

    Norms, clipping, noise and all-reduce are then single passes over memory. Gluon is not affected,
    because each parameter's own gradient is a view. The weights are not flattened: in prediction
    mode oneDNN reorders a weight in place, and would overwrite its neighbours.

    Args:
        layers: the result of `layers_of(network)`, initialised, all on one device.

    Attributes:
        array: the flat NDArray (P,).
        segments: the slice of the flat array that holds each layer, with its padding.

    Edge cases: setting `grad_req`, casting, moving or re-initialising a parameter silently detaches
    its view; `check_views` detects it. The gaps between parameters are set to zero before each use,
    so that their noise does not add up over the steps.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self._places: Dict[str, Tuple[gluon.Parameter, int, int]] = {}
        self.segments: List[slice] = []
        self._gaps: List[slice] = []
        self._owner: Optional[object] = None
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
        self.array = mx.nd.zeros((offset,), ctx=self.context)
        for parameter, offset, size in self._places.values():
            parameter._grad = [self.array[offset : offset + size].reshape(parameter.shape)]
            autograd.mark_variables(parameter._data, parameter._grad, parameter.grad_req)
        self.mark(is_fresh=False)  # no pass has written here yet
        mx.nd.waitall()

    def check_views(self) -> None:
        """Refuse to go on if a gradient is no longer in the flat array."""
        start = address(self.array)
        for parameter, offset, _ in self._places.values():
            if not parameter._grad or address(parameter._grad[0]) != start + 4 * offset:
                raise UserError(
                    f"{parameter.name} was re-initialised, cast or moved after training "
                    "was set up: its gradient would escape the clipping"
                )

    def refuse_stale(self) -> None:
        """Refuse gradients that are not newer than the last update."""
        stale = [name for name, (p, _, _) in self._places.items() if not p._data[0]._fresh_grad]
        if stale:
            raise UserError(
                f"{stale[0]} (and {len(stale) - 1} more) has no new gradient since the "
                "last step: one gradient may be released only once; call backward() "
                "before each step, and freeze what the loss does not use"
            )

    def mark(self, *, is_fresh: bool) -> None:
        """Declare the gradients new (written without a backward pass) or used."""
        for parameter, _, _ in self._places.values():
            parameter._data[0]._fresh_grad = is_fresh

    def give_to(self, owner: object) -> None:
        """Name the owner of the array's content, who alone may release it; None for nobody."""
        self._owner = owner
        self.mark(is_fresh=False)

    def take_from(self, owner: object) -> None:
        """Let the owner use the array's content, once.

        Raises:
            UserError: it belongs to another owner or to none, or a backward pass has written a raw
                gradient since.
        """
        is_raw = any(p._data[0]._fresh_grad for p, _, _ in self._places.values())
        if is_raw or self._owner is not owner:
            raise UserError(
                "these gradients are raw or were released before: what a mechanism returns may be "
                "released once, and what backward() wrote never; call privatise() before each step"
            )
        self._owner = None

    def gradients(self) -> np.ndarray:
        """Return the gradients as float32 (P,): the memory itself on a CPU, a copy on a GPU."""
        self.check_views()
        mx.nd.waitall()
        on_cpu = self.context.device_type == "cpu"
        gradients = host_view(self.array) if on_cpu else self.array.asnumpy()
        for gap in self._gaps:
            gradients[gap] = 0
        return gradients

    def put_gradients(self, gradients: np.ndarray) -> None:
        """Write an array (P,) back; nothing is done if it is the memory itself."""
        if self.context.device_type != "cpu":
            self.array[:] = mx.nd.array(gradients, ctx=self.context, dtype="float32")
        elif gradients.ctypes.data != address(self.array):
            np.copyto(host_view(self.array), gradients, casting="same_kind")

    def views(self, array: np.ndarray) -> Dict[str, np.ndarray]:
        """Return each parameter's part of a flat array, in the parameter's shape."""
        return {
            name: array[offset : offset + size].reshape(parameter.shape)
            for name, (parameter, offset, size) in self._places.items()
        }

    def squared_norms(self, gradients: np.ndarray) -> np.ndarray:
        """Return the squared L2 norm of each layer's part, (L,) float64, exact to 1e-6.

        However small the gradients are: what float32 cannot square is squared in float64. A layer
        whose squares exceed the range of float32 has the norm ∞.
        """
        norms = self._add_up(sum_of_squares, gradients, range(len(self.layers)))  # (L,)
        small = [k for k, norm in enumerate(norms) if norm < LEAST_SAFE_SQUARES]
        if small:
            norms[small] = self._add_up(_squares_in_float64, gradients, small)
        return norms

    def _add_up(
        self, of_chunk: Callable[[np.ndarray], float], gradients: np.ndarray, numbers: Sequence[int]
    ) -> np.ndarray:
        """Add up, for each of these layers, what a function says of its chunks; (n,) float64."""
        chunks = [
            (place, gradients[start : min(start + CHUNK, offset + size)])
            for place, k in enumerate(numbers)
            for _, offset, size in (self._places[p.name] for p in self.layers[k].parameters)
            for start in range(offset, offset + size, CHUNK)
        ]
        threads = allowed_threads() if self.size > CHUNK else 1
        found = in_threads(of_chunk, [chunk for _, chunk in chunks], threads=threads)
        sums = np.zeros(len(numbers))  # (n,)
        np.add.at(sums, [place for place, _ in chunks], found)
        return sums


def sum_of_squares(values: np.ndarray) -> float:
    """Sum the squares of a float32 array in blocks, and the blocks' sums in float64.

    MXNet's own norms, summed in float32, come out too low: more than C would pass the clipping.
    """
    return call("sum_of_squares", np.ascontiguousarray(values, np.float32), values.size)


def _squares_in_float64(values: np.ndarray) -> float:
    """Sum the squares of a float32 array in float64: several times slower, whatever their size."""
    return float(np.square(values, dtype=np.float64).sum())
