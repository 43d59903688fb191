"""The bi-LSTM without its padding, as an operator in Python around `runtime.lstm_pass`."""

from __future__ import annotations

from functools import partial
from typing import List, NamedTuple, Sequence, Tuple

import mxnet as mx
import numpy as np

from edp_mx.models import clc_layers
from edp_mx.models.python_operators import fill, register
from edp_mx.runtime import lstm_pass
from edp_mx.runtime.arrays import to_numpy
from edp_mx.runtime.lstm_pass import LSTMMemory, LSTMWeights
from edp_mx.runtime.packing import Packing

OPERATOR = "BiLSTM"  # its name among MXNet's operators; ghost clipping recognises it by this
DIRECTIONS = ("forward", "backward")
PARAMETERS = ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")  # of one direction


class BiLSTM(clc_layers.BiLSTM):
    """`clc_layers.BiLSTM` with the same parameters and values; padding costs no time."""

    def hybrid_forward(self, F, inputs, lengths):
        states, lengths = inputs, F.cast(lengths, "float32")
        for layer in range(self.num_layers):
            if layer:
                states = self.dropout(states)
            lstms = [getattr(self, f"{direction}{layer}") for direction in DIRECTIONS]
            parameters = [getattr(lstm, f"l0_{name}") for lstm in lstms for name in PARAMETERS]
            # The children's forward passes are not run, so their parameters are read here.
            values = [p.var() if F is mx.sym else p.data(inputs.context) for p in parameters]
            size = lstms[0]._hidden_size
            states = F.Custom(states, lengths, *values, op_type=OPERATOR, state_size=size)[0]
        return states  # (T, N, 2H)


class _Direction(NamedTuple):
    """One direction's part of an operator's arrays, without a copy. Shapes: states (T, N, H)."""

    packing: Packing
    states: np.ndarray
    memory: LSTMMemory


def _directions(lengths: np.ndarray, states: np.ndarray, room: np.ndarray) -> List[_Direction]:
    """Return both directions. Shapes: lengths (N,), states (T, N, 2H), room (2, 6·T·N·H)."""
    size = states.shape[-1] // 2
    both = []
    for place, part in enumerate((states[..., :size], states[..., size:])):  # (T, N, H)
        packing = Packing.of(lengths, reverse=place == 1)
        kept = LSTMMemory(room[place, : 6 * packing.num_rows * size], size)
        both.append(_Direction(packing, part, kept))
    return both


class _Operator(mx.operator.CustomOp):
    """See `lstm_pass`; what the backward pass needs is the second output."""

    def forward(self, is_train, req, in_data, out_data, aux) -> None:  # noqa: ARG002
        inputs, lengths, *values = map(to_numpy, in_data)
        weights = LSTMWeights(*values[:4]), LSTMWeights(*values[4:])

        def make(states: np.ndarray) -> None:
            for own, each in zip(weights, _directions(lengths, states, to_numpy(out_data[1]))):
                packing, part, kept = each
                lstm_pass.forward(inputs, own, packing, states=part, memory=kept)

        fill(out_data[0], req[0], make)

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:  # noqa: ARG002
        heads, inputs, lengths, states, room = map(
            to_numpy, (*out_grad[:1], *in_data[:2], *out_data)
        )
        i2h, h2h = (tuple(map(to_numpy, in_data[i::4])) for i in (2, 3))  # of both directions
        forwards = _directions(lengths, states, room)
        packings = [each.packing for each in forwards]
        gates = [
            lstm_pass.backward(each.states, own, each.packing, each.memory)
            for own, each in zip(h2h, _directions(lengths, heads, room))
        ]  # (P, 4H) each
        fill(in_grad[0], req[0], partial(_input_gradients, packings, gates, i2h))
        fill(in_grad[1], req[1], lambda out: out.fill(0))
        for start, own, each in zip((2, 6), gates, forwards):
            own_targets = in_grad[start : start + 4], req[start : start + 4]
            _parameter_gradients(own, each, inputs, *own_targets)


def _input_gradients(
    packings: Sequence[Packing],
    gates: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    out: np.ndarray,
) -> None:
    """Add up both directions' gradients. Shapes: gates (P, 4H), weights (4H, I), out (T, N, I)."""
    packings[0].fill(out, lambda rows: np.matmul(gates[0], weights[0], out=rows))
    packings[1].add(out, gates[1] @ weights[1])


def _parameter_gradients(
    gates: np.ndarray, each: _Direction, inputs: np.ndarray, targets: list, requests: list
) -> None:
    """Fill one direction's parameter gradients. Shapes: gates (P, 4H), inputs (T, N, I)."""
    packing = each.packing
    later, earlier = packing.pairs(gates, packing.pack(each.states))  # (Q, 4H), (Q, H)
    products = ((gates, packing.pack(inputs)), (later, earlier))
    for target, request, (left, right) in zip(targets, requests, products):
        fill(target, request, partial(np.matmul, left.T, right))
    bias = gates.sum(axis=0)  # (4H,), of each of the two biases
    for target, request in zip(targets[2:], requests[2:]):
        fill(target, request, partial(np.copyto, src=bias))


@register(OPERATOR)
class _Properties(mx.operator.CustomOpProp):
    """What MXNet asks about the operator."""

    def __init__(self, state_size: str) -> None:
        super().__init__(need_top_grad=True)
        self._size = int(state_size)

    def list_arguments(self) -> List[str]:
        return ["data", "lengths", *(f"{d}_{name}" for d in DIRECTIONS for name in PARAMETERS)]

    def list_outputs(self) -> List[str]:
        return ["output", "memory"]

    def infer_shape(self, in_shape: List[list]) -> Tuple[List[list], List[list], List[list]]:
        steps, examples, inputs = data = in_shape[0]
        size = self._size
        weights = [[4 * size, inputs], [4 * size, size], [4 * size], [4 * size]]
        outputs = [[steps, examples, 2 * size], [2, 6 * steps * examples * size]]
        return [data, [examples], *weights, *weights], outputs, []

    def declare_backward_dependency(self, out_grad, in_data, out_data) -> List[int]:
        """Everything but the biases and the memory's gradient, which would be made for nothing."""
        return [out_grad[0], *in_data[:4], *in_data[6:8], *out_data]

    def create_operator(self, ctx, shapes, dtypes) -> _Operator:  # noqa: ARG002
        return _Operator()
