"""A step of an LSTM without its matrix products: by a compiled loop, or by NumPy."""

from __future__ import annotations

from typing import Optional, Tuple

import numpy as np

from edp_mx.runtime.kernels import kernels


class Cell:
    """Gates, cells and states of n examples, forwards and backwards, one step at a time.

    The rows of gates hold the input's, the forget, the new cell's and the output's gate one after
    the other.

    Args:
        bias: of the gates; a backward pass needs none.
        size: H.
        most: n is at most that.

    Shapes: bias (4H,).
    Edge cases: saturated gates are exact to 1e-7 and raise no warning; what is not finite stays in
    its own example.
    Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000.
    """

    def __init__(self, *, size: int, most: int, bias: Optional[np.ndarray] = None) -> None:
        self._size = size
        self._bias = np.zeros(4 * size, np.float32) if bias is None else bias  # (4H,)
        self._compiled = kernels()
        if self._compiled is None:
            self._work = np.empty((most, 4 * size), np.float32)
            self._rows = _Rows(self._bias, size, most)

    def forward(
        self,
        gates: np.ndarray,
        recurrent: Optional[np.ndarray],
        before: Optional[np.ndarray],
        *,
        cells: np.ndarray,
        squashed: np.ndarray,
        states: np.ndarray,
    ) -> None:
        """Makes a step.

        Args:
            gates: what the inputs make of them; become the gates after their activations.
            recurrent: what the states before make of them; None in the first step.
            before: the cells before; None in the first step.
            cells, squashed, states: become the cells, their tanh, and the states.

        Shapes: gates, recurrent (n, 4H) · before, cells, squashed, states (n, H).
        """
        if self._compiled is not None:
            self._compiled.lstm_cell(
                gates, recurrent, self._bias, before,
                cells=cells, squashed=squashed, states=states,
            )  # fmt: skip
            return
        if recurrent is not None:
            gates += recurrent
        self._rows.squash(gates)
        enter, forget, new, leave = _split(gates, self._size)  # (n, H) each
        np.multiply(enter, new, out=cells)
        if before is not None:
            cells += forget * before
        np.tanh(cells, out=squashed)
        np.multiply(leave, squashed, out=states)

    def backward(
        self,
        gates: np.ndarray,
        before: Optional[np.ndarray],
        squashed: np.ndarray,
        heads: np.ndarray,
        later: Optional[np.ndarray],
        *,
        cells: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Goes a step back.

        Args:
            gates, before, squashed: as `forward` left them.
            heads: gradients of the states.
            later: what the step after adds to those of the first m examples, which alone it has;
                None in the last step.
            cells: gradients of the cells; become those of the cells before.
            out: becomes the gradients of the gates before their activations.

        Shapes: gates, out (n, 4H) · before, squashed, heads, cells (n, H) · later (m, H), m ≤ n.
        """
        if self._compiled is not None:
            self._compiled.lstm_cell_backward(
                gates, before, squashed, heads, later, cells=cells, out=out
            )
            return
        work = self._work[: len(gates)]  # (n, 4H)
        enter, forget, new, leave = _split(gates, self._size)  # (n, H) each
        to_enter, to_forget, to_new, to_leave = _split(out, self._size)
        state = heads.copy()  # (n, H)
        if later is not None:
            state[: len(later)] += later
        np.multiply(state, squashed, out=to_leave)
        state *= leave
        state *= np.float32(1) - squashed * squashed
        cells += state
        np.multiply(cells, new, out=to_enter)
        np.multiply(cells, enter, out=to_new)
        if before is not None:
            np.multiply(cells, before, out=to_forget)
            cells *= forget
        else:
            to_forget[...] = 0
        np.add(gates, self._rows.offsets[: len(gates)], out=work)
        out *= work
        np.subtract(np.float32(1), gates, out=work)
        out *= work


class _Rows:
    """What NumPy would repeat for each example, written out: whole arrays take half the time.

    Attributes:
        offsets: what makes (s + offset) (1 − s) an activation's derivative: 0 of a sigmoid, 1 of
            tanh; (most, 4H), as the others are.
    """

    def __init__(self, bias: np.ndarray, size: int, most: int) -> None:
        def rows(*parts: float) -> np.ndarray:
            return np.tile(np.array(parts, np.float32).repeat(size), (most, 1))

        self._bias = np.tile(bias, (most, 1))
        self._scale, self._shift = rows(0.5, 0.5, 1, 0.5), rows(0.5, 0.5, 0, 0.5)
        self.offsets = rows(0, 0, 1, 0)

    def squash(self, gates: np.ndarray) -> None:
        """Adds the bias, then the activations in place; a sigmoid is ½ tanh(½ x) + ½."""
        count = len(gates)
        gates += self._bias[:count]
        gates *= self._scale[:count]
        np.tanh(gates, out=gates)
        gates *= self._scale[:count]
        gates += self._shift[:count]


def _split(gates: np.ndarray, size: int) -> Tuple[np.ndarray, ...]:
    """Views of the four gates. Shapes: (n, 4H) → 4 × (n, H)."""
    return tuple(gates[:, k * size : (k + 1) * size] for k in range(4))
