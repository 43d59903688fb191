"""One LSTM, forwards and backwards, in float32 NumPy: MXNet's fused one shows no gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np

from edp_mx.packing import Packing


@dataclass(frozen=True, eq=False)
class LSTMWeights:
    """The four parameters of one direction of one layer, or four arrays like them.

    The rows hold the gates one after the other, as MXNet and cuDNN have them: input, forget, cell,
    output.

    Shapes: i2h (4H, I) · h2h (4H, H) · i2h_bias, h2h_bias (4H,).
    """

    i2h: np.ndarray
    h2h: np.ndarray
    i2h_bias: np.ndarray
    h2h_bias: np.ndarray


class LSTMMemory:
    """What `backward` needs of `forward`, of P tokens.

    Args:
        room: float32, for all of it.

    Attributes:
        gates: after their activations.
        cells, squashed: cells and their tanh.

    Shapes: room (6·P·H,), gates (P, 4H), cells and squashed (P, H).
    """

    def __init__(self, room: np.ndarray, size: int) -> None:
        fourth, fifth = len(room) * 4 // 6, len(room) * 5 // 6
        self.gates = room[:fourth].reshape(-1, 4 * size)
        self.cells = room[fourth:fifth].reshape(-1, size)
        self.squashed = room[fifth:].reshape(-1, size)

    @classmethod
    def empty(cls, num_rows: int, size: int) -> LSTMMemory:
        """With room of its own."""
        return cls(np.empty(6 * num_rows * size, np.float32), size)


def forward(
    inputs: np.ndarray,
    weights: LSTMWeights,
    packing: Packing,
    *,
    states: np.ndarray,
    memory: LSTMMemory,
) -> None:
    """The states from a zero state on, over the tokens of a packing.

    Args:
        inputs: float32.
        weights: float32.
        states: is filled; exactly zero where the packing reads no token.
        memory: is filled; without it a pass would be slower, for its products are smaller.

    Shapes: inputs (T, N, I), states (T, N, H).
    Edge cases: saturated gates are exact to 1e-7 and raise no warning; what is not finite stays in
    its own example.

    Example:
        >>> weights = LSTMWeights(
        ...     np.zeros((4, 3), np.float32), np.zeros((4, 1), np.float32),
        ...     np.array([0, 0, 9, 0], np.float32), np.zeros(4, np.float32))
        >>> inputs, states = np.ones((2, 1, 3), np.float32), np.empty((2, 1, 1), np.float32)
        >>> forward(
        ...     inputs, weights, Packing.whole(2, 1), states=states, memory=LSTMMemory.empty(2, 1))
        >>> states.ravel().round(3)  # ½ tanh(½), then ½ tanh(¾): half of each gate is open
        array([0.231, 0.318], dtype=float32)
    """
    np.matmul(packing.pack(inputs), weights.i2h.T, out=memory.gates)  # (P, 4H)
    packing.fill(states, lambda rows: _read(rows, weights, packing, memory))


def _read(states: np.ndarray, weights: LSTMWeights, packing: Packing, memory: LSTMMemory) -> None:
    """Step after step; the gates are what the inputs alone make of them. Shapes: states (P, H)."""
    size, most = weights.h2h.shape[1], _most(packing)
    squash = _Squash(weights.i2h_bias + weights.h2h_bias, most)
    gates, cells = memory.gates, memory.cells
    recurrent, kept = np.empty((most, 4 * size), np.float32), np.empty((most, size), np.float32)
    before: Optional[slice] = None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for step in packing.steps:
            gate, cell, count = gates[step], cells[step], step.stop - step.start  # (n, 4H), (n, H)
            if before is not None:
                state = states[before][:count]  # (n, H)
                gate += np.matmul(state, weights.h2h.T, out=recurrent[:count])
            squash(gate)
            enter, forget, new, leave = _split(gate, size)  # (n, H) each
            np.multiply(enter, new, out=cell)
            if before is not None:
                cell += np.multiply(forget, cells[before][:count], out=kept[:count])
            squashed = np.tanh(cell, out=memory.squashed[step])
            np.multiply(leave, squashed, out=states[step])
            before = step


def backward(
    state_gradients: np.ndarray, h2h: np.ndarray, packing: Packing, memory: LSTMMemory
) -> np.ndarray:
    """The gradients of the gates before their activations, packed.

    Those of the inputs are their product with the i2h weight.

    Args:
        state_gradients: of the states that `forward` filled.
        h2h: the weight of `forward`.
        memory: what `forward` filled; it is left as it is.

    Shapes: state_gradients (T, N, H), h2h (4H, H) → (P, 4H).
    Edge cases: where an example's state gradients are zero from some step on, its gates' gradients
    are exactly zero there.
    """
    arriving = packing.pack(state_gradients)  # (P, H)
    size, most = h2h.shape[1], _most(packing)
    gate_gradients = np.empty_like(memory.gates)  # (P, 4H)
    turned = np.ascontiguousarray(h2h.T).T  # (4H, H): so its products are a fifth faster
    work = np.empty((most, 4 * size), np.float32)
    offsets = _offsets(size, most)
    states = np.empty((most, size), np.float32)  # gradients of the states
    cells = np.zeros((most, size), np.float32)  # gradients of the cells
    later: Optional[slice] = None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for index in range(len(packing.steps) - 1, -1, -1):
            step = packing.steps[index]
            before = packing.steps[index - 1] if index else None
            count = step.stop - step.start
            state = states[:count]
            if later is not None:
                # What is longer than `later` has no gradient from there yet.
                some = later.stop - later.start
                np.matmul(gate_gradients[later], turned, out=state[:some])
                state[:some] += arriving[step][:some]
                state[some:] = arriving[step][some:]
            else:
                state[...] = arriving[step]
            earlier = None if before is None else memory.cells[before][:count]
            _gate_step(
                state,
                cells[:count],
                memory,
                step,
                earlier,
                gate_gradients[step],
                work[:count],
                offsets[:count],
            )
            later = step
    return gate_gradients


def _gate_step(
    state: np.ndarray,
    cell: np.ndarray,
    memory: LSTMMemory,
    step: slice,
    earlier: Optional[np.ndarray],
    gradients: np.ndarray,
    work: np.ndarray,
    offsets: np.ndarray,
) -> None:
    """One step back: fills `gradients` (N, 4H); `cell` (N, H) becomes the earlier step's.

    `state` (N, H), the gradient of the state, and `work` (N, 4H) are used up.
    """
    size = state.shape[1]
    gates, squashed, slope = memory.gates[step], memory.squashed[step], work[:, :size]
    enter, forget, new, leave = _split(gates, size)  # (N, H) each
    to_enter, to_forget, to_new, to_leave = _split(gradients, size)
    np.multiply(state, squashed, out=to_leave)
    state *= leave
    np.multiply(squashed, squashed, out=slope)
    np.subtract(np.float32(1), slope, out=slope)
    state *= slope
    cell += state
    np.multiply(cell, new, out=to_enter)
    np.multiply(cell, enter, out=to_new)
    if earlier is not None:
        np.multiply(cell, earlier, out=to_forget)
        cell *= forget
    else:
        to_forget[...] = 0
    np.add(gates, offsets, out=work)
    gradients *= work
    np.subtract(np.float32(1), gates, out=work)
    gradients *= work


class _Squash:
    """Adds the bias to n rows of gates and puts their activations in their place.

    A sigmoid is ½ tanh(½ x) + ½, so that one tanh serves all gates. The rows that NumPy would
    repeat are written out for all examples: passes over whole arrays are twice as fast.

    Shapes: bias (4H,); gates (n, 4H), n at most `most`.
    """

    def __init__(self, bias: np.ndarray, most: int) -> None:
        half, none, whole = np.array([0.5, 0, 1], np.float32).repeat(len(bias) // 4).reshape(3, -1)
        self._bias = _rows(bias, most)
        self._scale = _rows(np.concatenate([half, half, whole, half]), most)
        self._shift = _rows(np.concatenate([half, half, none, half]), most)

    def __call__(self, gates: np.ndarray) -> None:
        count = len(gates)
        gates += self._bias[:count]
        gates *= self._scale[:count]
        np.tanh(gates, out=gates)
        gates *= self._scale[:count]
        gates += self._shift[:count]


def _offsets(size: int, most: int) -> np.ndarray:
    """What makes (s + offset) (1 − s) an activation's derivative: 0 of a sigmoid, 1 of tanh."""
    row = np.zeros(4 * size, np.float32)
    row[2 * size : 3 * size] = 1
    return _rows(row, most)


def _rows(row: np.ndarray, most: int) -> np.ndarray:
    return np.repeat(row[None], most, axis=0)


def _split(gates: np.ndarray, size: int) -> Tuple[np.ndarray, ...]:
    """Views of the four gates. Shapes: (N, 4H) → 4 × (N, H)."""
    return tuple(gates[:, k * size : (k + 1) * size] for k in range(4))


def _most(packing: Packing) -> int:
    """Rows of the first step, which has most."""
    return max((step.stop - step.start for step in packing.steps), default=0)
