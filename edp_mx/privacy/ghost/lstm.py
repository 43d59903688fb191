"""Per-example norms and weighted sums of an LSTM's gradients.

With the gradients g_t of the gates before their activations (`lstm_pass.backward`), an LSTM is two
Dense layers with one output: the i2h weight's gradient is Σ_t g_t x_tᵀ, where x_t are the inputs,
the h2h weight's Σ_t g_t h_{t-1}ᵀ, where h_t are the states, and either bias's Σ_t g_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np

from edp_mx.privacy.ghost import dense, explicit


@dataclass(frozen=True, eq=False)
class LSTMSquaredNorms:
    """Squared norm of each example's gradient, one field a parameter.

    Shapes: (N,) float64 each; `bias` is that of the i2h bias and that of the h2h bias, whose
    gradients are equal.
    """

    i2h: np.ndarray
    h2h: np.ndarray
    bias: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Of all four parameters together, (N,)."""
        return self.i2h + self.h2h + 2 * self.bias


@dataclass(frozen=True, eq=False)
class LSTMTotals:
    """Where the sums of the four parameters' gradients go; None for a parameter that is frozen.

    Shapes: i2h (4H, I) · h2h (4H, H) · i2h_bias, h2h_bias (4H,), float32, views or not.
    """

    i2h: Optional[np.ndarray]
    h2h: Optional[np.ndarray]
    i2h_bias: Optional[np.ndarray]
    h2h_bias: Optional[np.ndarray]


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def squared_norms(
    inputs: np.ndarray,
    states: np.ndarray,
    gate_gradients: np.ndarray,
    *,
    num_examples: Optional[int] = None,
    is_reverse: bool = False,
) -> LSTMSquaredNorms:
    """Squared norms of the per-example gradients, as exact as `dense.squared_norms`.

    Args:
        inputs: what the LSTM read.
        states: what `lstm_pass.forward` filled.
        gate_gradients: what `lstm_pass.backward` returned, zero at padding.
        num_examples: where an example has several sequences, which follow one another.
        is_reverse: whether it read from the last step to the first.

    Shapes: inputs (T, S, I) · states (T, S, H) · gate_gradients (T, S, 4H) for S sequences, which
    are N examples unless `num_examples` says otherwise.
    Edge cases: an example that is not finite has a norm that is not; the others are not touched.
    Source: Li et al. 2022, "Large language models can be strong differentially private learners",
    section 4; see `dense.squared_norms`, which also chooses between the Gram and the direct form.

    Example:
        >>> two_steps = np.ones((2, 1, 1), np.float32)
        >>> squared_norms(two_steps, two_steps, np.ones((2, 1, 4), np.float32))
        LSTMSquaredNorms(i2h=array([16.]), h2h=array([4.]), bias=array([16.]))
    """
    num_steps, num_sequences, _ = gate_gradients.shape
    count = num_sequences if num_examples is None else num_examples
    gates = _by_example(gate_gradients, count)  # (N, T, 4H); T: of all sequences of an example
    gram = None
    if count * gates.shape[1] ** 2 <= dense.GROUP_FLOATS:
        gram = dense.gram(gates)  # (N, T, T), of all parameters
    # A norm is that of the transposed gradient too: the gates stand where a Dense layer's inputs
    # do, since their Gram matrix is the one to share.
    ones = np.ones((*gates.shape[:2], 1), np.float32)  # what a bias reads
    i2h = dense.weight_squared_norms(gates, _by_example(inputs, count), input_gram=gram)
    bias = dense.weight_squared_norms(gates, ones, input_gram=gram)
    if num_steps == 1:
        return LSTMSquaredNorms(i2h, np.zeros(count), bias)
    later, earlier = _neighbours(is_reverse)
    if gram is not None:  # without the steps that have none before them
        gram = gram[:, later, later] if count == num_sequences else None
    h2h = dense.weight_squared_norms(
        _by_example(gate_gradients[later], count),
        _by_example(states[earlier], count),
        input_gram=gram,
    )
    return LSTMSquaredNorms(i2h, h2h, bias)


def clipped_sums(
    inputs: np.ndarray,
    states: np.ndarray,
    gate_gradients: np.ndarray,
    factors: np.ndarray,
    *,
    totals: LSTMTotals,
    is_reverse: bool = False,
) -> None:
    """Add Σ_i factors_i · (gradient of example i) to the totals, one matrix product a weight.

    Args:
        inputs: as for `squared_norms`.
        states: as there.
        gate_gradients: as there.
        factors: what each example counts.
        totals: added to in place.
        is_reverse: as for `squared_norms`.

    Shapes: inputs (T, S, I) · states (T, S, H) · gate_gradients (T, S, 4H) · factors (N,); an
    example has S / N sequences, which follow one another.
    Edge cases: an example with factor 0 is left out, finite or not (`explicit.contributing`).
    """
    count = len(factors)
    gates = _by_example(gate_gradients, count)  # (N, T, 4H)
    if totals.i2h is not None:
        dense.add_weight_sum(totals.i2h, _by_example(inputs, count), gates, factors)
    if totals.h2h is not None and len(states) > 1:
        later, earlier = _neighbours(is_reverse)
        own = _by_example(gate_gradients[later], count)  # (N, T, 4H)
        dense.add_weight_sum(totals.h2h, _by_example(states[earlier], count), own, factors)
    biases = [total for total in (totals.i2h_bias, totals.h2h_bias) if total is not None]
    if biases:
        gradients = dense.bias_gradients(gates)  # (N, 4H)
        for total in biases:
            explicit.add_sum(total, gradients, factors)


def _neighbours(is_reverse: bool) -> Tuple[slice, slice]:
    """The steps that have one before them, and those before them.

    Read backwards, what lies before an example's last token is padding, whose state is zero.
    """
    later, earlier = slice(1, None), slice(0, -1)
    return (earlier, later) if is_reverse else (later, earlier)


def _by_example(values: np.ndarray, num_examples: int) -> np.ndarray:
    """With the examples first, their sequences end to end: a view, or a copy of several sequences.

    Shapes: (T, S, d) → (N, T · S/N, d).
    """
    rows = values.swapaxes(0, 1)  # (S, T, d)
    return rows if len(rows) == num_examples else rows.reshape(num_examples, -1, rows.shape[2])
