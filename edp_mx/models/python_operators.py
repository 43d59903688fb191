"""What MXNet's operators in Python have in common."""

from __future__ import annotations

from typing import Any, Callable

import mxnet as mx
import numpy as np

from edp_mx.runtime.arrays import has_view, to_numpy


def register(name: str) -> Callable[[type], Any]:
    """Register an operator with MXNet, which may say what its backward pass reads.

    MXNet keeps one list of that for all operators in Python, the last one's: another's backward
    pass fails on arrays that it does not read itself. The list only tells sparse arrays from dense
    ones; without it all are dense, as ours are.
    """
    nothing = property(lambda _: set(), lambda _, __: None)
    type(mx.operator._registry).result_deps = nothing  # noqa: SLF001 (MXNet has no other way)
    return mx.operator.register(name)


def fill(target: mx.nd.NDArray, request: str, make: Callable[[np.ndarray], object]) -> None:
    """Write or add a result of an operator in Python as MXNet requests.

    `make` fills an array of the target's shape.
    """
    if request == "null":
        return
    place = to_numpy(target)
    if request == "add":
        result = np.empty_like(place)
        make(result)
        place += result
    else:
        make(place)
    if not has_view(target):
        target[:] = place
