"""The forward and backward pass of an LSTM in float32: MXNet's fused LSTM hides its gates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_mx.runtime.kernels import call
from edp_mx.runtime.packing import Packing


@dataclass(frozen=True, eq=False)
class LSTMWeights:
    """The four parameters of one direction of one layer, or four arrays of their shapes.

    Gates are in MXNet's order: i2h (4H, I) · h2h (4H, H) · i2h_bias, h2h_bias (4H,).
    """

    i2h: np.ndarray
    h2h: np.ndarray
    i2h_bias: np.ndarray
    h2h_bias: np.ndarray


class LSTMMemory:
    """Values that `forward` stores for `backward`, for P tokens, in one float32 room (6·P·H,).

    Shapes: gates after their activations (P, 4H); cells and squashed, their tanh, (P, H).
    """

    def __init__(self, room: np.ndarray, size: int) -> None:
        fourth, fifth = len(room) * 4 // 6, len(room) * 5 // 6
        self.gates = room[:fourth].reshape(-1, 4 * size)
        self.cells = room[fourth:fifth].reshape(-1, size)
        self.squashed = room[fifth:].reshape(-1, size)

    @classmethod
    def empty(cls, num_rows: int, size: int) -> LSTMMemory:
        return cls(np.empty(6 * num_rows * size, np.float32), size)


def forward(
    inputs: np.ndarray,
    weights: LSTMWeights,
    packing: Packing,
    *,
    states: np.ndarray,
    memory: LSTMMemory,
) -> None:
    """Compute the states over the tokens of a packing, starting from a zero state, in float32.

    The states are exactly zero where the packing reads no token.

    Shapes: inputs (T, N, I), states (T, N, H).
    Edge cases: saturated gates are exact to 1e-7 and raise no warning; a value that is not finite
    affects only its own example.
    """
    np.matmul(packing.pack(inputs), weights.i2h.T, out=memory.gates)  # (P, 4H)
    packing.fill(states, lambda rows: _read(rows, weights, packing, memory))


def _read(states: np.ndarray, weights: LSTMWeights, packing: Packing, memory: LSTMMemory) -> None:
    """Run all steps on gates that hold the inputs' contribution. Shapes: states (P, H)."""
    size, most = weights.h2h.shape[1], _most(packing)
    bias = weights.i2h_bias + weights.h2h_bias  # (4H,)
    room = np.empty((most, 4 * size), np.float32)
    recurrent, cells, before = None, None, None  # from the previous step
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for step in packing.steps:
            count = step.stop - step.start
            if before is not None:
                recurrent = np.matmul(states[before][:count], weights.h2h.T, out=room[:count])
                cells = memory.cells[before][:count]  # (n, H)
            read = memory.gates[step], recurrent, bias, cells, count, size
            made = memory.cells[step], memory.squashed[step], states[step]
            call("lstm_cell", *read, *made, states.strides[0] // 4)
            before = step


def backward(
    state_gradients: np.ndarray, h2h: np.ndarray, packing: Packing, memory: LSTMMemory
) -> np.ndarray:
    """Return the gradients of the gates before their activations, packed.

    The gradients of the inputs are their product with the i2h weight. If an example's state
    gradients are zero from some step on, its gates' gradients are exactly zero from there on.

    Shapes: state_gradients (T, N, H), h2h (4H, H) → (P, 4H).
    """
    arriving = packing.pack(state_gradients)  # (P, H)
    size, most = h2h.shape[1], _most(packing)
    gate_gradients = np.empty_like(memory.gates)  # (P, 4H)
    turned = np.ascontiguousarray(h2h.T).T  # (4H, H): in this order its products are a fifth faster
    room = np.empty((most, size), np.float32)
    cells = np.zeros((most, size), np.float32)  # gradients of the cells
    later = None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for index in range(len(packing.steps) - 1, -1, -1):
            step = packing.steps[index]
            count = step.stop - step.start
            before = memory.cells[packing.steps[index - 1]][:count] if index else None
            read = memory.gates[step], before, memory.squashed[step]
            heads = (
                arriving[step],
                arriving.strides[0] // 4,
                later,
                0 if later is None else len(later),
            )
            call("lstm_cell_backward", *read, *heads, count, size, cells, gate_gradients[step])
            if index:
                later = np.matmul(gate_gradients[step], turned, out=room[:count])  # (n, H)
    return gate_gradients


def _most(packing: Packing) -> int:
    """Return the number of rows of the first step, which has the most."""
    return max((step.stop - step.start for step in packing.steps), default=0)
