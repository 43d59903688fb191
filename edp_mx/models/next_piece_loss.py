"""The output layer of a language model and its loss, as one operator in Python."""

from __future__ import annotations

from functools import partial
from typing import List, Tuple

import mxnet as mx
import numpy as np

from edp_mx.models.python_operators import fill, register
from edp_mx.runtime import cross_entropy
from edp_mx.runtime.arrays import to_numpy

OPERATOR = "NextPieceLoss"  # its name among MXNet's operators; ghost clipping recognises it by this


class _Operator(mx.operator.CustomOp):
    """See `cross_entropy`; the places without a target take no part."""

    def forward(self, is_train, req, in_data, out_data, aux) -> None:  # noqa: ARG002
        states, table, targets = map(to_numpy, in_data)
        is_read = targets >= 0  # (N, R)
        ids = targets[is_read].astype(np.int64)
        wants = req[3] != "null"  # not outside training
        found = cross_entropy.forward(states[is_read], table, ids, has_gradients=wants)
        for target, request, values in zip(out_data, req, found):
            fill(target, request, partial(_spread, is_read, values))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:  # noqa: ARG002
        heads, states, table, targets, shifts, gradients = map(
            to_numpy, (out_grad[0], *in_data, *out_data[2:])
        )
        is_read = targets >= 0  # (N, R)

        def add_up(out: np.ndarray) -> None:
            scaled = states[is_read] * heads[is_read][:, None]  # (K, H)
            read = states[is_read], table, targets[is_read].astype(np.int64), shifts[is_read]
            for block, part in cross_entropy.score_gradients(*read):
                np.matmul(part.T, scaled, out=out[block])

        fill(in_grad[0], req[0], lambda out: np.multiply(gradients, heads[:, :, None], out=out))
        fill(in_grad[1], req[1], add_up)
        fill(in_grad[2], req[2], lambda out: out.fill(0))


def _spread(is_read: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Fill an array with what was found at some places, and zeros. Shapes: (N, R), (K, …)."""
    out.fill(0)
    out[is_read] = values


@register(OPERATOR)
class _Properties(mx.operator.CustomOpProp):
    """What MXNet asks about the operator.

    Shapes: states (N, R, H), table (V, H), targets (N, R), −1 where there is none → losses,
        likeliest (N, R), 0 where there is none; shifts (N, R, 3) and gradients (N, R, H) for the
        backward pass and ghost clipping.
    """

    def list_arguments(self) -> List[str]:
        return ["states", "table", "targets"]

    def list_outputs(self) -> List[str]:
        return ["losses", "likeliest", "shifts", "gradients"]

    def infer_shape(self, in_shape: List[list]) -> Tuple[List[list], List[list], List[list]]:
        places, width = in_shape[0][:2], in_shape[0][2]
        shapes = [in_shape[0], [in_shape[1][0], width], places]
        return shapes, [places, places, [*places, 3], in_shape[0]], []

    def declare_backward_dependency(self, out_grad, in_data, out_data) -> List[int]:
        """Not the gradients of other outputs than the losses, which would be zeros."""
        return [out_grad[0], *in_data, *out_data[2:]]

    def create_operator(self, ctx, shapes, dtypes) -> _Operator:  # noqa: ARG002
        return _Operator()
