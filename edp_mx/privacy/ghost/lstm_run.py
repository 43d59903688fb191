"""An LSTM that was cut out of its graph and runs in NumPy, forward and backward."""

from __future__ import annotations

from typing import Iterator, List, Mapping, NamedTuple, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.errors import UserError
from edp_mx.privacy.ghost.segments import Cut
from edp_mx.runtime import lstm_pass
from edp_mx.runtime.arrays import host_view
from edp_mx.runtime.lstm_pass import LSTMMemory, LSTMWeights
from edp_mx.runtime.packing import Packing


class SeenLSTM(NamedTuple):
    """What was recorded of one direction of a cut.

    Shapes: inputs (T, N, I), states (T, N, H), gate_gradients (T, N, 4H).
    """

    parameters: Tuple[str, ...]
    is_reverse: bool
    inputs: np.ndarray
    states: np.ndarray
    gate_gradients: np.ndarray


class _Direction(NamedTuple):
    """What the forward pass of one direction left. Shapes: states (T, N, H)."""

    states: np.ndarray
    weights: LSTMWeights
    packing: Packing
    memory: LSTMMemory


class LSTMRun:
    """One run of a cut's LSTM, or of both its directions, for one loss.

    Attributes:
        states: a leaf of the graphs of later segments: (T, N, H) per direction.

    Shapes: inputs (T, N, I) · lengths (N,), None where all steps are read.
    """

    def __init__(
        self,
        cut: Cut,
        parameters: Mapping[str, gluon.Parameter],
        inputs: mx.nd.NDArray,
        lengths: Optional[mx.nd.NDArray],
    ) -> None:
        self._cut = cut
        self._inputs = to_numpy(inputs)  # (T, N, I)
        self._gates: List[np.ndarray] = []
        num_steps, num_examples, _ = self._inputs.shape
        size = int(cut.node.attributes["state_size"])
        states = np.empty((num_steps, num_examples, size * len(cut.parameters)), np.float32)
        self._directions = []
        for place, names in enumerate(cut.parameters):
            # asnumpy, not a view: oneDNN may keep a weight in an order of its own.
            weights = LSTMWeights(*(parameters[name].data().asnumpy() for name in names))
            packing = Packing.whole(num_steps, num_examples)
            if lengths is not None:
                packing = Packing.of(to_numpy(lengths), reverse=place == 1)
            part = states[:, :, place * size : (place + 1) * size]  # (T, N, H)
            memory = LSTMMemory.empty(packing.num_rows, size)
            lstm_pass.forward(self._inputs, weights, packing, states=part, memory=memory)
            self._directions.append(_Direction(part, weights, packing, memory))
        with autograd.pause():
            self.states = mx.nd.array(states, ctx=inputs.context, dtype="float32")
        self.states.attach_grad()

    def go_back(self) -> np.ndarray:
        """Return the gradient of the inputs (T, N, I), given that of the states."""
        refuse_unused(self.states, self._cut.node.name)
        arriving = to_numpy(self.states.grad)  # (T, N, H), or of both directions
        leaving = np.zeros(self._inputs.shape, np.float32)
        parts = np.split(arriving, len(self._directions), axis=2)
        for (_, weights, packing, memory), part in zip(self._directions, parts):
            gates = lstm_pass.backward(part, weights.h2h, packing, memory)  # (P, 4H)
            packing.add(leaving, gates @ weights.i2h)
            shape = (*leaving.shape[:2], gates.shape[1])
            self._gates.append(packing.spread(gates, shape))  # (T, N, 4H)
        return leaving

    def seen(self) -> Iterator[SeenLSTM]:
        """Yield what was recorded of each direction, after `go_back`."""
        found = zip(self._cut.parameters, self._directions, self._gates)
        for place, (names, direction, gates) in enumerate(found):
            yield SeenLSTM(names, place == 1, self._inputs, direction.states, gates)


def refuse_unused(leaf: mx.nd.NDArray, name: str) -> None:
    """Refuse a leaf that the backward pass did not reach: its gradient is of other examples."""
    if not leaf._fresh_grad:  # noqa: SLF001 (Gluon's trainer asks the same)
        raise UserError(
            f"the loss does not use {name}, whose parameters are to be trained; freeze them "
            "(grad_req 'null') or set privacy.clipping: loop"
        )


def to_numpy(array: mx.nd.NDArray) -> np.ndarray:
    """Return an array in NumPy: its memory if it is float32 on a CPU, a copy otherwise."""
    array.wait_to_read()
    if array.context.device_type != "cpu" or array.dtype != np.float32:
        return array.asnumpy()
    return host_view(array)
