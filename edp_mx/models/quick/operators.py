"""What our operators share: MXNet's frame for operators in Python, and their arrays' memory."""

from __future__ import annotations

from typing import Callable, ClassVar, List, Tuple

import mxnet as mx
import numpy as np

from edp_mx.arrays import host_view
from edp_mx.kernels import Kernels, kernels


def compiled() -> Kernels:
    """The compiled loops. Raises: RuntimeError: there are none; `quicken` lets nobody come here."""
    found = kernels()
    if found is None:
        raise RuntimeError("a graph with edp_mx's own operators needs edp_mx's compiled loops")
    return found


def memory(array: mx.nd.NDArray) -> np.ndarray:
    """An operator's argument as NumPy sees it, without a copy, ready to read."""
    array.wait_to_read()
    return host_view(array)


def fill(target: mx.nd.NDArray, request: str, make: Callable[[np.ndarray], None]) -> None:
    """Gives a result to MXNet the way it is asked for.

    Args:
        make: writes the result into the array that it is given, which has the target's shape.
    """
    if request == "null":
        return
    place = host_view(target)
    if request == "add":
        result = np.empty_like(place)
        make(result)
        place += result
    else:
        make(place)


# What any of our operators reads backwards, as MXNet numbers it (gradients of the outputs, inputs,
# outputs). It keeps one such list for all operators in Python: what lies on it, and which an
# operator has but has not declared, makes that one's backward pass fail.
READ_BACKWARDS = frozenset({0, 1, 2, 5, 7, 8})


class Properties(mx.operator.CustomOpProp):
    """What MXNet asks about an operator.

    Attributes:
        arguments, outputs: their names.
    """

    arguments: ClassVar[Tuple[str, ...]]
    outputs: ClassVar[Tuple[str, ...]] = ("output",)

    def __init__(self) -> None:
        super().__init__(need_top_grad=True)

    def list_arguments(self) -> List[str]:
        return list(self.arguments)

    def list_outputs(self) -> List[str]:
        return list(self.outputs)

    def declare_backward_dependency(self, out_grad, in_data, out_data) -> List[int]:
        """What of `READ_BACKWARDS` the operator has."""
        return [place for place in (*out_grad, *in_data, *out_data) if place in READ_BACKWARDS]
