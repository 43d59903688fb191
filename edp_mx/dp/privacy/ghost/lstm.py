"""Per-example norms and weighted sums of an LSTM's gradients, and its run outside its graph.

Given the gradients g_t of the gates before their activations (`lstm_pass.backward`), an LSTM is two
Dense layers that share one output: the i2h weight's gradient is Σ_t g_t x_tᵀ, where x_t are the
inputs, the h2h weight's Σ_t g_t h_{t-1}ᵀ, where h_t are the states, and either bias's Σ_t g_t.
"""

from __future__ import annotations

from typing import Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.dp.accounting.clippings import TAKE_LOOP
from edp_mx.dp.privacy.ghost import dense, explicit
from edp_mx.dp.privacy.ghost.rows import squares_of
from edp_mx.dp.privacy.ghost.segments import Cut
from edp_mx.errors import UserError
from edp_mx.runtime import lstm_pass
from edp_mx.runtime.arrays import to_numpy
from edp_mx.runtime.lstm_pass import LSTMMemory, LSTMWeights
from edp_mx.runtime.packing import Packing


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def squared_norms(
    inputs: np.ndarray,
    states: np.ndarray,
    gate_gradients: np.ndarray,
    *,
    num_examples: Optional[int] = None,
    is_reverse: bool = False,
) -> Tuple[np.ndarray, ...]:
    """Return the squared norms of each example's gradients, as exact as `dense.squared_norms`.

    Those of the i2h weight, the h2h weight, the i2h bias and the h2h bias, (N,) float64 each; the
    last two are equal. An example may have several sequences, which follow one another.

    Shapes: inputs (T, S, I) · states (T, S, H), as `lstm_pass.forward` filled them · gate_gradients
    (T, S, 4H), as `lstm_pass.backward` returned them, zero at padding.
    """
    num_steps, num_sequences, _ = gate_gradients.shape
    count = num_sequences if num_examples is None else num_examples
    gates = _by_example(gate_gradients, count)  # (N, T, 4H); T: of all sequences of an example
    gram = None
    if count * gates.shape[1] ** 2 <= explicit.GROUP_FLOATS:
        gram = dense.gram(gates)  # (N, T, T), of all parameters
    # A gradient and its transpose have one norm: the gates take the place of a Dense layer's
    # inputs, since theirs is the Gram matrix that can be shared.
    ones = np.ones((*gates.shape[:2], 1), np.float32)  # what a bias reads
    i2h = dense.squared_norms(gates, _by_example(inputs, count), input_gram=gram)
    bias = dense.squared_norms(gates, ones, input_gram=gram)
    if num_steps == 1:
        return i2h, np.zeros(count), bias, bias
    later, earlier = _neighbours(is_reverse)
    if gram is not None:  # without the steps that have none before them
        gram = gram[:, later, later] if count == num_sequences else None
    h2h = dense.squared_norms(
        _by_example(gate_gradients[later], count),
        _by_example(states[earlier], count),
        input_gram=gram,
    )
    return i2h, h2h, bias, bias


def clipped_sums(
    inputs: np.ndarray,
    states: np.ndarray,
    gates: np.ndarray,
    packing: Packing,
    factors: np.ndarray,
    *,
    totals: Sequence[Optional[np.ndarray]],
) -> None:
    """Add Σ_i factors_i · (gradient of example i) to the totals, one matrix product per weight.

    Shapes: inputs (T, S, I) · states (T, S, H) · gates (P, 4H), as `lstm_pass.backward` returned
    them · factors (N,) · totals of the i2h weight (4H, I), the h2h weight (4H, H), the i2h bias and
    the h2h bias (4H,), None for a parameter that is frozen.
    """
    num_sequences = inputs.shape[1]
    each = np.repeat(factors, num_sequences // len(factors))[packing.owners(num_sequences)]  # (P,)
    i2h, h2h, *biases = totals
    if i2h is not None:
        _add_product(i2h, gates, packing.pack(inputs), each)
    if h2h is not None:
        later, earlier = packing.pairs(gates, packing.pack(states))  # (Q, 4H), (Q, H)
        _add_product(h2h, later, earlier, packing.pairs(each, each)[0])
    for total in (total for total in biases if total is not None):
        explicit.add_sum(total, gates, each)


def _add_product(
    total: np.ndarray, gates: np.ndarray, values: np.ndarray, factors: np.ndarray
) -> None:
    """total += Σ_p c_p g_p v_pᵀ. Shapes: (4H, d) · gates (P, 4H) · values (P, d) · (P,)."""
    factors, gates, values = explicit.contributing(factors, gates, values)
    total += gates.T @ (values * factors[:, None])


def _neighbours(is_reverse: bool) -> Tuple[slice, slice]:
    """The steps that have a predecessor, and these; backwards, padding (zero) precedes the last."""
    later, earlier = slice(1, None), slice(0, -1)
    return (earlier, later) if is_reverse else (later, earlier)


def _by_example(values: np.ndarray, num_examples: int) -> np.ndarray:
    """Examples first, their sequences end to end. Shapes: (T, S, d) → (N, T · S/N, d)."""
    rows = values.swapaxes(0, 1)  # (S, T, d)
    return rows if len(rows) == num_examples else rows.reshape(num_examples, -1, rows.shape[2])


class SeenLSTM(NamedTuple):
    """The record of one direction of a cut.

    Shapes: inputs (T, N, I), states (T, N, H), gates (P, 4H), their gradients.
    """

    parameters: Tuple[str, ...]
    is_reverse: bool
    inputs: np.ndarray
    states: np.ndarray
    gates: np.ndarray
    packing: Packing

    def sequence_squares(self) -> np.ndarray:
        """Return the squared norms of the gradients of each sequence's gates, (S,)."""
        count = self.inputs.shape[1]
        owners, squares = self.packing.owners(count), squares_of(self.gates)  # (P,), (P,)
        return np.bincount(owners, squares, minlength=count)


class _Direction(NamedTuple):
    """The results of the forward pass of one direction. Shapes: states (T, N, H)."""

    states: np.ndarray
    weights: LSTMWeights
    packing: Packing
    memory: LSTMMemory


class LSTMRun:
    """One run of a cut's LSTM, or of both its directions; `states` is a leaf of later segments.

    Shapes: inputs (T, N, I) · lengths (N,), None where all steps are read · states (T, N, H) per
    direction.
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
        """Return the gradient of the inputs (T, N, I), given the gradient of the states."""
        refuse_unused(self.states, self._cut.node.name)
        arriving = to_numpy(self.states.grad)  # (T, N, H), or of both directions
        leaving = np.zeros(self._inputs.shape, np.float32)
        parts, self._gates = np.split(arriving, len(self._directions), axis=2), []
        for (_, weights, packing, memory), part in zip(self._directions, parts):
            gates = lstm_pass.backward(part, weights.h2h, packing, memory)  # (P, 4H)
            packing.add(leaving, gates @ weights.i2h)
            self._gates.append(gates)
        return leaving

    def seen(self) -> Iterator[SeenLSTM]:
        """Yield the record of each direction, after `go_back`."""
        found = zip(self._cut.parameters, self._directions, self._gates)
        for place, (names, own, gates) in enumerate(found):
            yield SeenLSTM(names, place == 1, self._inputs, own.states, gates, own.packing)


def refuse_unused(leaf: mx.nd.NDArray, name: str) -> None:
    """Refuse a leaf that the backward pass did not reach: its gradient is of other examples."""
    if not leaf._fresh_grad:  # noqa: SLF001 (Gluon's trainer asks the same)
        raise UserError(
            f"the loss does not use {name}, whose parameters are to be trained; freeze them "
            f"(grad_req 'null') or {TAKE_LOOP}"
        )
