"""Per-example norms and weighted sums of an LSTM's gradients.

Given the gradients g_t of the gates before their activations (`lstm_pass.backward`), an LSTM is two
Dense layers that share one output: the i2h weight's gradient is Σ_t g_t x_tᵀ, where x_t are the
inputs, the h2h weight's Σ_t g_t h_{t-1}ᵀ, where h_t are the states, and either bias's Σ_t g_t.
"""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import numpy as np

from edp_mx.privacy.ghost import dense, explicit


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

    Args:
        inputs: what the LSTM read.
        states: what `lstm_pass.forward` filled.
        gate_gradients: what `lstm_pass.backward` returned, zero at padding.
        num_examples: N, where an example has several sequences, which follow one another.
        is_reverse: whether it read from the last step to the first.

    Returns:
        Those of the i2h weight, the h2h weight, the i2h bias and the h2h bias, (N,) float64 each;
        the gradients of both biases are equal.

    Shapes: inputs (T, S, I) · states (T, S, H) · gate_gradients (T, S, 4H) for S sequences.

    Example:
        >>> two_steps = np.ones((2, 1, 1), np.float32)
        >>> squared_norms(two_steps, two_steps, np.ones((2, 1, 4), np.float32))
        (array([16.]), array([4.]), array([16.]), array([16.]))
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
    i2h = dense.weight_squared_norms(gates, _by_example(inputs, count), input_gram=gram)
    bias = dense.weight_squared_norms(gates, ones, input_gram=gram)
    if num_steps == 1:
        return i2h, np.zeros(count), bias, bias
    later, earlier = _neighbours(is_reverse)
    if gram is not None:  # without the steps that have none before them
        gram = gram[:, later, later] if count == num_sequences else None
    h2h = dense.weight_squared_norms(
        _by_example(gate_gradients[later], count),
        _by_example(states[earlier], count),
        input_gram=gram,
    )
    return i2h, h2h, bias, bias


def clipped_sums(
    inputs: np.ndarray,
    states: np.ndarray,
    gate_gradients: np.ndarray,
    factors: np.ndarray,
    *,
    totals: Sequence[Optional[np.ndarray]],
    is_reverse: bool = False,
) -> None:
    """Add Σ_i factors_i · (gradient of example i) to the totals, one matrix product per weight.

    Args:
        inputs, states, gate_gradients, is_reverse: see `squared_norms`.
        totals: of the i2h weight (4H, I), the h2h weight (4H, H), the i2h bias and the h2h bias
            (4H,), float32; None for a parameter that is frozen.

    Shapes: factors (N,); an example has S / N sequences, which follow one another.
    """
    count = len(factors)
    gates = _by_example(gate_gradients, count)  # (N, T, 4H)
    i2h, h2h, *biases = totals
    if i2h is not None:
        dense.add_weight_sum(i2h, _by_example(inputs, count), gates, factors)
    if h2h is not None and len(states) > 1:
        later, earlier = _neighbours(is_reverse)
        own = _by_example(gate_gradients[later], count)  # (N, T, 4H)
        dense.add_weight_sum(h2h, _by_example(states[earlier], count), own, factors)
    wanted = [total for total in biases if total is not None]
    if wanted:
        gradients = explicit.sums_over_positions(gates)  # (N, 4H)
        for total in wanted:
            explicit.add_sum(total, gradients, factors)


def _neighbours(is_reverse: bool) -> Tuple[slice, slice]:
    """The steps that have a predecessor, and their predecessors.

    Read backwards, an example's last token is preceded by padding, whose state is zero.
    """
    later, earlier = slice(1, None), slice(0, -1)
    return (earlier, later) if is_reverse else (later, earlier)


def _by_example(values: np.ndarray, num_examples: int) -> np.ndarray:
    """Examples first, their sequences end to end. Shapes: (T, S, d) → (N, T · S/N, d)."""
    rows = values.swapaxes(0, 1)  # (S, T, d)
    return rows if len(rows) == num_examples else rows.reshape(num_examples, -1, rows.shape[2])
