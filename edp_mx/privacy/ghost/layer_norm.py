"""Per-example gradients of LayerNorm's scale γ and shift β.

The output is γ x̂ + β with x̂ = (x − mean(x)) / √(var(x) + eps) over the last axis, so an example's
gradients are Σ_t g_t x̂_t and Σ_t g_t (`explicit.sums_over_positions`), a vector each.

Source: Ba et al. 2016; MXNet's LayerNorm (biased variance, eps inside the root).
"""

from __future__ import annotations

import numpy as np

from edp_mx.privacy.ghost import explicit


@np.errstate(over="ignore", invalid="ignore")
def gamma_gradients(inputs: np.ndarray, gradients: np.ndarray, *, eps: float) -> np.ndarray:
    """Return each example's gradient of γ.

    Shapes: inputs, gradients (N, d) or (N, T, d), also as swapped views → (N, d) float64.

    Example:
        >>> x = np.float32([[[1, 3], [3, 1]]])
        >>> gamma_gradients(x, np.float32([[[5, 7], [0, 1]]]), eps=0.0)
        array([[-5.,  6.]])
    """
    if inputs.ndim == 2:
        inputs, gradients = inputs[:, None], gradients[:, None]  # (N, 1, d)
    result = np.zeros((inputs.shape[0], inputs.shape[2]))  # (N, d)
    for start in range(0, inputs.shape[1], explicit.SUM_BLOCK):
        group = slice(start, start + explicit.SUM_BLOCK)
        normal = _normalised(inputs[:, group], eps)  # (N, at most SUM_BLOCK, d)
        result += np.einsum("ntd,ntd->nd", gradients[:, group], normal)
    return result


def _normalised(inputs: np.ndarray, eps: float) -> np.ndarray:
    """x̂, a new array in the memory order of `inputs`. Shapes: (N, T, d) → (N, T, d)."""
    centred = inputs - inputs.mean(axis=2, keepdims=True)
    variance = np.einsum("ntd,ntd->nt", centred, centred) / np.float32(inputs.shape[2])  # (N, T)
    centred *= (1 / np.sqrt(variance + np.float32(eps)))[:, :, None]
    return centred
