"""LayerNorm with a backward pass of its own: MXNet's is the slowest part of a BERT's step."""

from __future__ import annotations

from functools import partial
from typing import List, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.models.quick.operators import Properties, compiled, fill, memory

OPERATOR = "LayerNorm"  # its name among operators in Python; ghost clipping knows it by it
_ROWS = 128  # whose parts of γ's and β's gradients are summed in float32 before float64 takes over


class LayerNorm(nn.LayerNorm):
    """Gluon's LayerNorm over the last axis: the same values and parameters, a faster gradient.

    Shapes: (…, d) → (…, d).
    """

    def check(self) -> None:
        """Raises: ValueError: it is not over the last axis."""
        if self._axis != -1:
            raise ValueError(f"{self.name} is not over the last axis but over {self._axis}")

    def hybrid_forward(self, F, data, gamma, beta):
        """See the class."""
        return F.Custom(data, gamma, beta, op_type=OPERATOR, eps=repr(self._epsilon))


def gradients(
    inputs: np.ndarray, gamma: np.ndarray, heads: np.ndarray, *, eps: float, out: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """The gradients of γ x̂ + β with x̂ = (x − mean(x)) / √(var(x) + eps), row by row.

    Args:
        inputs: x.
        heads: the gradient of the result, g.
        out: becomes the gradient of x: (h − mean(h) − x̂ · mean(h x̂)) / √(var(x) + eps), h = γ g.

    Returns:
        The gradients of γ, Σ g x̂, and of β, Σ g.

    Shapes: inputs, heads, out (R, d); gamma (d,) → (d,), (d,): float32.
    Source: Ba et al. 2016, the derivative of equation 3.
    """
    sums, loops = np.zeros((2, len(gamma))), compiled()
    for start in range(0, len(inputs), _ROWS):
        rows = slice(start, start + _ROWS)
        by_gamma, by_beta = some = np.zeros((2, len(gamma)), np.float32)
        loops.layer_norm_backward(
            inputs[rows],
            gamma,
            heads[rows],
            eps=eps,
            out=out[rows],
            by_gamma=by_gamma,
            by_beta=by_beta,
        )
        sums += some
    by_gamma, by_beta = sums.astype(np.float32)
    return by_gamma, by_beta


class _Operator(mx.operator.CustomOp):
    """Forwards MXNet's own operator, backwards `gradients`."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self._eps = eps

    def forward(self, is_train, req, in_data, out_data, aux) -> None:  # noqa: ARG002
        if req[0] == "write":
            mx.nd.LayerNorm(*in_data, axis=-1, eps=self._eps, out=out_data[0])
        else:
            normal = mx.nd.LayerNorm(*in_data, axis=-1, eps=self._eps)
            self.assign(out_data[0], req[0], normal)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:  # noqa: ARG002
        x, gamma, heads = (memory(array) for array in (*in_data[:2], out_grad[0]))
        rows = (-1, x.shape[-1])
        sums: List[np.ndarray] = []

        def by_input(out: np.ndarray) -> None:
            sums[:] = gradients(
                x.reshape(rows), gamma, heads.reshape(rows), eps=self._eps, out=out.reshape(rows)
            )

        if req[0] == "null":
            by_input(np.empty_like(x))
        fill(in_grad[0], req[0], by_input)
        for place, request, values in zip(in_grad[1:], req[1:], sums):
            fill(place, request, partial(np.copyto, src=values))


@mx.operator.register(OPERATOR)
class _Properties(Properties):
    arguments = ("data", "gamma", "beta")

    def __init__(self, eps: str) -> None:
        super().__init__()
        self._eps = float(eps)

    def infer_shape(self, in_shape: List[list]) -> Tuple[List[list], List[list], List[list]]:
        data = in_shape[0]
        return [data, data[-1:], data[-1:]], [data], []

    def create_operator(self, ctx, shapes, dtypes) -> _Operator:  # noqa: ARG002
        return _Operator(self._eps)
