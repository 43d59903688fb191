"""The rule for small parameters: every example's own gradient is kept in memory, (N, ...)."""

from __future__ import annotations

import math
from typing import Iterator, Tuple

import numpy as np

GROUP_FLOATS = 1 << 20  # working memory of a group of examples: 4 MB
SUM_BLOCK = 128  # floats summed in float32 before float64 takes over: exact to 1e-6
# Sums of squares outside this range may have lost terms to the range of float32.
SAFE_SQUARES = (1e-24, float(np.finfo(np.float32).max))
SMALLEST_FACTOR = float(np.finfo(np.float32).tiny)


def groups(num_examples: int, floats: int) -> Iterator[slice]:
    """Yield slices of examples that need `floats` each and GROUP_FLOATS together."""
    size = max(1, GROUP_FLOATS // floats)
    for start in range(0, num_examples, size):
        yield slice(start, min(start + size, num_examples))


@np.errstate(over="ignore", invalid="ignore")
def squared_norms(gradients: np.ndarray) -> np.ndarray:
    """Return the squared L2 norm of each example's gradient. Shapes: (N, ...) → (N,) float64.

    Not finite where the example's gradient is not; float32's range is no limit.
    """
    rows = gradients.reshape(len(gradients), math.prod(gradients.shape[1:]))  # (N, P)
    whole = rows.shape[1] - rows.shape[1] % SUM_BLOCK
    blocks = rows[:, :whole].reshape(len(rows), whole // SUM_BLOCK, SUM_BLOCK)  # (N, blocks, 128)
    norms = np.einsum("nbk,nbk->nb", blocks, blocks).sum(axis=1, dtype=np.float64)  # (N,)
    norms += np.einsum("nk,nk->n", rows[:, whole:], rows[:, whole:])
    unsafe = ~((norms > SAFE_SQUARES[0]) & (norms < SAFE_SQUARES[1]))  # (N,)
    if unsafe.any():
        norms[unsafe] = np.square(rows[unsafe], dtype=np.float64).sum(axis=1)
    return norms


@np.errstate(over="ignore", invalid="ignore")
def sums_over_positions(gradients: np.ndarray) -> np.ndarray:
    """Return each example's gradient of a vector added at every position, such as a bias.

    Shapes: (N, T, p), also as swapped views → (N, p) float64.
    """
    num_examples, num_positions, size = gradients.shape
    sums = np.zeros((num_examples, size))
    for start in range(0, num_positions, SUM_BLOCK):
        block = gradients[:, start : start + SUM_BLOCK]  # (N, at most SUM_BLOCK, p)
        sums += np.matmul(np.ones(block.shape[1], gradients.dtype), block)
    return sums


def add_sum(total: np.ndarray, gradients: np.ndarray, factors: np.ndarray) -> None:
    """total += Σ_i c_i g_i, in place. Shapes: total (...) · gradients (N, ...) · factors (N,)."""
    factors, gradients = contributing(factors, gradients)
    total += (factors @ gradients.reshape(len(gradients), total.size)).reshape(total.shape)


def contributing(factors: np.ndarray, *arrays: np.ndarray) -> Tuple[np.ndarray, ...]:
    """Return the factors in float32 and the arrays, without the examples whose factor is 0.

    These are left out since 0 times a value that is not finite would make the whole sum NaN. A
    factor below float32's normal range counts as 0: rounded, it could be twice as large, and its
    example would count for more than C.

    Shapes: (N,), (N, ...) each → (n,), (n, ...) each; the arrays themselves where n = N.
    """
    kept = factors >= SMALLEST_FACTOR  # (N,)
    if not kept.all():
        factors, arrays = factors[kept], tuple(array[kept] for array in arrays)
    return (factors.astype(np.float32), *arrays)


@np.errstate(over="ignore", invalid="ignore")
def gamma_gradients(inputs: np.ndarray, gradients: np.ndarray, *, eps: float) -> np.ndarray:
    """Return each example's gradient of a LayerNorm's scale γ: Σ_t g_t x̂_t.

    Shapes: inputs, gradients (N, T, d), also as swapped views → (N, d) float64.

    Source: Ba et al. 2016; MXNet's LayerNorm (biased variance, eps inside the root).
    """
    result = np.zeros((inputs.shape[0], inputs.shape[2]))  # (N, d)
    for start in range(0, inputs.shape[1], SUM_BLOCK):
        group = slice(start, start + SUM_BLOCK)
        normal = _normalised(inputs[:, group], eps)  # (N, at most SUM_BLOCK, d)
        result += np.einsum("ntd,ntd->nd", gradients[:, group], normal)
    return result


def _normalised(inputs: np.ndarray, eps: float) -> np.ndarray:
    """x̂, a new array in the memory order of `inputs`. Shapes: (N, T, d) → (N, T, d)."""
    centred = inputs - inputs.mean(axis=2, keepdims=True)
    variance = np.einsum("ntd,ntd->nt", centred, centred) / np.float32(inputs.shape[2])  # (N, T)
    centred *= (1 / np.sqrt(variance + np.float32(eps)))[:, :, None]
    return centred
