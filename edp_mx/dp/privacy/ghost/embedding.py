"""Per-example norms and weighted sums of an Embedding's gradient, without (V, d) arrays.

An example's gradient has one row for each distinct id: the sum of the gradients at all positions of
that id. So the positions are grouped by (example, id) and summed by one sparse matrix product,
which is exact where positions cancel and fast for many characters.

Source: Li et al. 2022, section 4.2, whose masked Gram has the same value.
"""

from __future__ import annotations

from typing import Tuple

import numpy as np
from scipy import sparse

from edp_mx.dp.privacy.ghost import explicit
from edp_mx.errors import UserError


@np.errstate(over="ignore", invalid="ignore")
def squared_norms(ids: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return the squared norms of each example's gradient of the whole table.

    Shapes: ids (N, ...) · gradients (N, ..., d) → (N,) float64, in any order of the axes in memory.
    """
    numbers, examples, rows = _flat(ids, gradients)
    span = int(numbers.max()) - int(numbers.min()) + 1
    keys = examples * span + (numbers - numbers.min())  # (R,)
    positions = np.arange(len(keys))
    found, sums = _sums_by_key(keys, positions, np.ones(len(keys), np.float32), rows)
    return np.bincount(found // span, explicit.squared_norms(sums), minlength=len(ids))


def add_sum(total: np.ndarray, ids: np.ndarray, gradients: np.ndarray, factors: np.ndarray) -> None:
    """total += Σ_i c_i ∂loss_i/∂table, in place; only the rows that were looked up are touched.

    Shapes: total (V, d) · ids (N, ...) · gradients (N, ..., d) · factors (N,).
    """
    numbers, examples, rows = _flat(ids, gradients)
    kept, positions = explicit.contributing(factors[examples], np.arange(len(numbers)))
    if len(positions):
        found, sums = _sums_by_key(numbers[positions], positions, kept, rows)
        total[found] += sums


def refuse_strangers(ids: np.ndarray, num_rows: int) -> None:
    """Refuse ids that are not rows of the table.

    MXNet silently takes the nearest row: two ids would be one row, and `squared_norms` too small.
    """
    if ids.min() < 0 or ids.max() >= num_rows:
        raise UserError(
            f"the inputs name the rows {ids.min():g} to {ids.max():g} of an embedding with "
            f"{num_rows} rows, from 0 to {num_rows - 1}: give it more rows, or other numbers to "
            "what is unknown"
        )


def _flat(ids: np.ndarray, gradients: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids (R,), examples (R,) and gradients (R, d) of all positions, in their memory order."""
    axes = sorted(range(ids.ndim), key=lambda axis: -gradients.strides[axis])
    examples = np.arange(len(ids)).reshape((-1,) + (1,) * (ids.ndim - 1))
    examples = np.broadcast_to(examples, ids.shape).transpose(axes).ravel()
    rows = gradients.transpose(*axes, ids.ndim).reshape(-1, gradients.shape[-1])
    return ids.transpose(axes).ravel().astype(np.int64), examples, rows


def _sums_by_key(
    keys: np.ndarray, positions: np.ndarray, weights: np.ndarray, rows: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """The distinct keys (S,), and for each the weighted sum of its rows (S, d)."""
    order = np.argsort(keys, kind="stable")
    in_order, indices = keys[order], np.arange(len(keys))
    is_new = np.r_[True, in_order[1:] != in_order[:-1]]  # (K,)
    since_new = indices - np.maximum.accumulate(np.where(is_new, indices, 0))  # (K,)
    starts = np.flatnonzero(since_new % explicit.SUM_BLOCK == 0)  # (P,), P ≥ S
    matrix = sparse.csr_matrix(
        (weights[order], positions[order], np.r_[starts, len(keys)]), shape=(len(starts), len(rows))
    )
    parts = matrix @ rows  # (P, d)
    firsts = np.flatnonzero(is_new[starts])  # (S,)
    lasts = np.r_[firsts[1:], len(starts)]
    sums = parts[firsts] if len(firsts) < len(starts) else parts  # (S, d)
    for i in np.flatnonzero(lasts - firsts > 1):
        sums[i] = parts[firsts[i] : lasts[i]].sum(axis=0, dtype=np.float64)
    return in_order[is_new], sums
