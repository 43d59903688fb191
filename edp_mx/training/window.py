"""Loss and speed over some steps."""

from __future__ import annotations

import time

import mxnet as mx
import numpy as np


class Window:
    """Loss and speed since the last line of the log."""

    def __init__(self, context: mx.Context) -> None:
        self._loss = mx.nd.zeros((1,), ctx=context)
        self._pieces = self._steps = 0
        self._started = time.perf_counter()

    def add(self, loss: mx.nd.NDArray, pieces: int) -> None:
        """One step of this worker, without waiting for it. Shapes: loss (1,)."""
        self._loss += loss
        self._pieces += pieces
        self._steps += 1

    def means(self) -> np.ndarray:
        """Mean loss, pieces a second. Shapes: → (2,)."""
        loss = self._loss.asscalar() / self._steps
        return np.array([loss, self._pieces / (time.perf_counter() - self._started)])
