"""Per-example norms and weighted sums of a Dense layer's gradients, over sequences or not.

For one example, the weight's gradient is Σ_t g_t a_tᵀ and the bias's is Σ_t g_t, where a_t (d,) is
the layer's input at position t and g_t (p,) the gradient with respect to its output. Swapped views
of (T, N, d) arrays are not copied.

Source: Li et al. 2022 ("Large language models can be strong DP learners"), section 4.2, equation
(2) and appendix F; for T = 1 Goodfellow 2015.
"""

from __future__ import annotations

from typing import Optional, Tuple

import numpy as np

from edp_mx.dp.privacy.ghost import explicit
from edp_mx.runtime.kernels import call

# Below this share of Σ_t ‖g_t‖² ‖a_t‖² cancellation in float32 affects the fifth digit.
MIN_REMAINDER = 0.05
MOST_POSITIONS = 0.9  # share with a gradient above which a copy without the rest costs more
FEW_POSITIONS, LONG_VECTORS = 64, 128  # where our own loop is ahead of a BLAS
MIN_TRACE = 1e-30  # the squares of smaller numbers leave float32's normal range


@np.errstate(over="ignore", invalid="ignore")
def squared_norms(
    inputs: np.ndarray,
    gradients: np.ndarray,
    *,
    input_gram: Optional[np.ndarray] = None,
    bias: Optional[np.ndarray] = None,
) -> np.ndarray:
    """Return the squared norms of each example's gradient of the weight.

    Those of the bias go into `bias` (N,) float64, if it is given: both share a product.

    The Gram form ⟨A Aᵀ, G Gᵀ⟩ is taken where it needs fewer multiplications than the direct form
    ‖Gᵀ A‖², that is where T (p + d) < p d. `input_gram` is `gram(inputs)`, where layers share it.

    Shapes: inputs (N, T, d) · gradients (N, T, p) · input_gram (N, T, T) → (N,) float64.
    Edge cases: exact to a relative 1e-5 or, where positions cancel, to 1e-7 of Σ_t ‖g_t‖ ‖a_t‖. Not
    finite where the example's inputs or gradients are not.
    """
    inputs, gradients = _readable(inputs), _readable(gradients)
    (_, num_positions, d), p = inputs.shape, gradients.shape[2]
    if num_positions * (p + (d if input_gram is None else 0)) >= p * d:
        if bias is not None:
            bias[:] = bias_squared_norms(gradients)
        return _direct_norms(inputs, gradients)
    weight = np.empty(len(inputs))
    for group in explicit.groups(len(inputs), 2 * inputs.shape[1] ** 2):
        a, g = inputs[group], gradients[group]  # (n, T, d), (n, T, p)
        a_gram = gram(a) if input_gram is None else input_gram[group]  # (n, T, T)
        g_gram = gram(g)  # (n, T, T)
        weight[group] = _weight_norms(a, g, a_gram, g_gram)
        if bias is not None:
            bias[group] = _bias_norms(g, g_gram)
    return weight


def bias_squared_norms(gradients: np.ndarray) -> np.ndarray:
    """Return ‖Σ_t g_t‖² of each example. Shapes: (N, T, p) → (N,) float64."""
    return explicit.squared_norms(_readable(gradients).sum(axis=1, dtype=np.float64))


def add_weight_sum(
    total: np.ndarray, inputs: np.ndarray, gradients: np.ndarray, factors: np.ndarray
) -> None:
    """total += Σ_i c_i Σ_t g_it a_itᵀ, in place, as one matrix product.

    The narrower array is scaled, the other read in place. Where many positions have no gradient,
    like the padding of a batch, both are copied without these positions.

    Shapes: total (p, d) · inputs (N, T, d) · gradients (N, T, p) · factors (N,).
    """
    inputs, gradients = _readable(inputs), _readable(gradients)
    factors, inputs, gradients = explicit.contributing(factors, inputs, gradients)
    counts = gradients.any(axis=2)  # (n, T)
    if gradients.shape[2] <= inputs.shape[2]:
        rows, scaled = _rows(inputs, gradients, factors, counts)
        total += scaled.T @ rows
    else:
        rows, scaled = _rows(gradients, inputs, factors, counts)
        total += rows.T @ scaled


def gram(rows: np.ndarray) -> np.ndarray:
    """Inner products of an example's positions. Shapes: (N, T, d) → (N, T, T)."""
    is_plain = rows.dtype == np.float32 and rows.strides[2] == rows.itemsize
    if is_plain and rows.shape[1] <= FEW_POSITIONS and rows.shape[2] >= LONG_VECTORS:
        made = np.empty((*rows.shape[:2], rows.shape[1]), np.float32)
        strides = (stride // 4 for stride in rows.strides[:2])
        call("gram", rows, *rows.shape, *strides, made)  # NumPy prepares each example anew
        return made
    return np.matmul(rows, np.swapaxes(rows, 1, 2))


def _readable(array: np.ndarray) -> np.ndarray:
    """The array with vectors that BLAS reads: indexing can leave them scattered."""
    is_scattered = array.shape[2] > 1 and array.strides[2] != array.itemsize
    return np.ascontiguousarray(array) if is_scattered else array


def _weight_norms(
    inputs: np.ndarray, gradients: np.ndarray, a_gram: np.ndarray, g_gram: np.ndarray
) -> np.ndarray:
    """⟨A Aᵀ, G Gᵀ⟩ (N,), in float64 where float32 was not enough."""
    norms, is_exact = gram_norms(a_gram, g_gram)  # (N,)
    if not is_exact.all():
        a, g = inputs[~is_exact].astype(np.float64), gradients[~is_exact].astype(np.float64)
        norms[~is_exact] = _inner_products(gram(a), gram(g))
    return np.maximum(norms, 0)


def gram_norms(a_gram: np.ndarray, g_gram: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return ⟨A Aᵀ, G Gᵀ⟩ and whether float32 was enough. Shapes: (N, T, T) each → (N,) each."""
    norms = _inner_products(a_gram, g_gram)  # (N,)
    a_squares, g_squares = _squares(a_gram), _squares(g_gram)  # (N, T), ‖a_t‖² and ‖g_t‖²
    is_exact = norms > MIN_REMAINDER * (a_squares * g_squares).sum(axis=1)
    is_exact &= (a_squares.sum(axis=1) > MIN_TRACE) & (g_squares.sum(axis=1) > MIN_TRACE)
    return norms, is_exact


def _bias_norms(gradients: np.ndarray, g_gram: np.ndarray) -> np.ndarray:
    """The sum of G Gᵀ (N,), in float64 where float32 was not enough, as for an attention's keys."""
    norms = g_gram.sum(axis=(1, 2), dtype=np.float64)  # (N,)
    trace = _squares(g_gram).sum(axis=1)  # (N,)
    is_exact = (norms > MIN_REMAINDER * trace) & (trace > MIN_TRACE)
    if not is_exact.all():
        sums = gradients[~is_exact].sum(axis=1, dtype=np.float64)  # (n, p)
        norms[~is_exact] = explicit.squared_norms(sums)
    return norms


def _inner_products(a_gram: np.ndarray, g_gram: np.ndarray) -> np.ndarray:
    return np.einsum("nst,nst->n", a_gram, g_gram, dtype=np.float64)


def _squares(gram_: np.ndarray) -> np.ndarray:
    """The diagonals. Shapes: (N, T, T) → (N, T) float64."""
    return np.einsum("ntt->nt", gram_).astype(np.float64)


def _direct_norms(inputs: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """‖Gᵀ A‖², a few examples at a time. Shapes: (N, T, d), (N, T, p) → (N,) float64."""
    norms = np.empty(len(inputs))
    for group in explicit.groups(len(inputs), inputs.shape[2] * gradients.shape[2]):
        products = np.matmul(np.swapaxes(gradients[group], 1, 2), inputs[group])  # (n, p, d)
        norms[group] = explicit.squared_norms(products)
    return norms


def _rows(
    still: np.ndarray, scaled: np.ndarray, factors: np.ndarray, counts: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Both arrays as rows at the positions counted, in the first's memory order; the second scaled.

    Shapes: (N, T, d), (N, T, p), (N,), (N, T) → (n, d), a view if n = N·T, and (n, p).
    """
    factors = np.broadcast_to(factors[:, None, None], (*counts.shape, 1))  # (N, T, 1)
    if still.strides[0] < still.strides[1]:  # (T, N, d) in memory
        still, scaled, factors, counts = (
            np.swapaxes(x, 0, 1) for x in (still, scaled, factors, counts)
        )
    if np.count_nonzero(counts) < MOST_POSITIONS * counts.size:
        still, scaled, factors = still[counts], scaled[counts], factors[counts]  # (n, …)
    product = np.multiply(scaled, factors, order="C")
    return still.reshape(-1, still.shape[-1]), product.reshape(-1, product.shape[-1])
