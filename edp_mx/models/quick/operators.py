"""MXNet's frame for operators in Python, and their arrays' memory."""

from __future__ import annotations

from typing import Callable, ClassVar, List, Tuple

import mxnet as mx
import numpy as np

from edp_mx.runtime.arrays import host_view


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


class Properties(mx.operator.CustomOpProp):
    """What MXNet asks about an operator.

    Only one operator in Python may say what its backward pass reads: MXNet keeps one such list for
    all of them, and what lies on it, and which another has but has not declared, makes that one's
    backward pass fail.

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
