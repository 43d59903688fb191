"""One LSTM, forwards and backwards, in float32 NumPy: MXNet's fused one shows no gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np


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


@dataclass(frozen=True, eq=False)
class LSTMMemory:
    """What `backward` needs of `forward`.

    Shapes: gates (T, N, 4H), after their activations · cells, squashed (= tanh cells) (T, N, H).
    """

    gates: np.ndarray
    cells: np.ndarray
    squashed: np.ndarray


def forward(inputs: np.ndarray, weights: LSTMWeights) -> Tuple[np.ndarray, LSTMMemory]:
    """The states from a zero state on.

    Args:
        inputs: float32.
        weights: float32.

    Returns:
        The states, and what `backward` needs.

    Shapes: inputs (T, N, I) → states (T, N, H).
    Edge cases: saturated gates are exact and raise no warning; what is not finite stays in its own
    example. A padded step is a step like any other: whoever masks its state has zero as its
    gradient, and nothing comes back from it.

    Example:
        >>> weights = LSTMWeights(
        ...     np.zeros((4, 3), np.float32), np.zeros((4, 1), np.float32),
        ...     np.array([0, 0, 9, 0], np.float32), np.zeros(4, np.float32))
        >>> states, _ = forward(np.ones((2, 1, 3), np.float32), weights)
        >>> states.ravel().round(3)  # ½ tanh(½), then ½ tanh(¾): half of each gate is open
        array([0.231, 0.318], dtype=float32)
    """
    num_steps, num_examples, input_size = inputs.shape
    size = weights.h2h.shape[1]
    bias = weights.i2h_bias + weights.h2h_bias  # (4H,)
    gates = inputs.reshape(-1, input_size) @ weights.i2h.T  # (T·N, 4H)
    gates = gates.reshape(num_steps, num_examples, 4 * size)
    cells = np.empty((num_steps, num_examples, size), np.float32)
    squashed, states = np.empty_like(cells), np.empty_like(cells)
    recurrent = np.empty((num_examples, 4 * size), np.float32)
    kept = np.empty((num_examples, size), np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for t in range(num_steps):
            gate = gates[t]  # (N, 4H)
            gate += bias
            if t:
                gate += np.matmul(states[t - 1], weights.h2h.T, out=recurrent)
            _squash_gates(gate, size)
            enter, forget, new, leave = _split(gate, size)  # (N, H) each
            np.multiply(enter, new, out=cells[t])
            if t:
                cells[t] += np.multiply(forget, cells[t - 1], out=kept)
            np.tanh(cells[t], out=squashed[t])
            np.multiply(leave, squashed[t], out=states[t])
    return states, LSTMMemory(gates, cells, squashed)


def backward(
    state_gradients: np.ndarray,
    weights: LSTMWeights,
    memory: LSTMMemory,
    *,
    with_inputs: bool = True,
) -> Tuple[Optional[np.ndarray], np.ndarray]:
    """Gradients of the inputs and of the gates before their activations; none of the weights.

    Args:
        state_gradients: of the states that `forward` returned.
        weights: those of `forward`.
        memory: what `forward` returned; it is left as it is.
        with_inputs: whether the inputs' gradients are wanted.

    Returns:
        The inputs' gradients (None where not wanted), and those of the gates.

    Shapes: state_gradients (T, N, H) → (T, N, I), (T, N, 4H).
    Edge cases: where an example's state gradients are zero from some step on, its gates' and
    inputs' gradients are exactly zero there.
    """
    num_steps, num_examples, size = state_gradients.shape
    gate_gradients = np.empty_like(memory.gates)  # (T, N, 4H)
    h2h = np.ascontiguousarray(weights.h2h.T)  # (H, 4H): its products are a fifth faster
    work = np.empty((num_examples, 4 * size), np.float32)
    state = np.empty((num_examples, size), np.float32)  # gradient of the state
    cell = np.zeros((num_examples, size), np.float32)  # gradient of the cell
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for t in range(num_steps - 1, -1, -1):
            if t + 1 < num_steps:
                np.matmul(gate_gradients[t + 1], h2h.T, out=state)
                state += state_gradients[t]
            else:
                state[...] = state_gradients[t]
            _gate_step(t, state, cell, memory, gate_gradients[t], work)
    if not with_inputs:
        return None, gate_gradients
    input_gradients = gate_gradients.reshape(-1, 4 * size) @ weights.i2h  # (T·N, I)
    return input_gradients.reshape(num_steps, num_examples, -1), gate_gradients


def _gate_step(
    t: int,
    state: np.ndarray,
    cell: np.ndarray,
    memory: LSTMMemory,
    gradients: np.ndarray,
    work: np.ndarray,
) -> None:
    """One step back: fills `gradients` (N, 4H); `cell` (N, H) becomes the earlier step's.

    `state` (N, H), the gradient of the state, and `work` (N, 4H) are used up.
    """
    size = state.shape[1]
    enter, forget, new, leave = _split(memory.gates[t], size)  # (N, H) each
    to_enter, to_forget, to_new, to_leave = _split(gradients, size)
    squashed, slope = memory.squashed[t], work[:, :size]
    np.multiply(state, squashed, out=to_leave)
    state *= leave
    np.multiply(squashed, squashed, out=slope)
    np.subtract(np.float32(1), slope, out=slope)
    state *= slope
    cell += state
    np.multiply(cell, new, out=to_enter)
    np.multiply(cell, enter, out=to_new)
    if t:
        np.multiply(cell, memory.cells[t - 1], out=to_forget)
        cell *= forget
    else:
        to_forget[...] = 0
    # Derivatives of the activations: s − s² of a sigmoid, 1 − s² of tanh.
    gates = memory.gates[t]
    np.multiply(gates, gates, out=work)
    for part in (slice(0, 2 * size), slice(3 * size, None)):
        np.subtract(gates[:, part], work[:, part], out=work[:, part])
    part = slice(2 * size, 3 * size)
    np.subtract(np.float32(1), work[:, part], out=work[:, part])
    gradients *= work


def _squash_gates(gates: np.ndarray, size: int) -> None:
    """Activations in place: sigmoid, sigmoid, tanh, sigmoid. Shape (N, 4H)."""
    _sigmoid(gates[:, : 2 * size])
    np.tanh(gates[:, 2 * size : 3 * size], out=gates[:, 2 * size : 3 * size])
    _sigmoid(gates[:, 3 * size :])


def _sigmoid(values: np.ndarray) -> None:
    """1 ∕ (1 + exp(−x)) in place; where exp overflows, the result is the right one, 0."""
    np.negative(values, out=values)
    np.exp(values, out=values)
    values += np.float32(1)
    np.reciprocal(values, out=values)


def _split(gates: np.ndarray, size: int) -> Tuple[np.ndarray, ...]:
    """The four gates as views. Shapes: (N, 4H) → 4 × (N, H)."""
    return tuple(gates[:, k * size : (k + 1) * size] for k in range(4))
