"""Per-example norms of a table that goes in as an Embedding and out as a Dense layer's weight.

For one example, the gradient of the table is Σ_s g_s x_sᵀ + Σ_t 1_t e_tᵀ: x_s (d,) is the output
layer's input at position s, g_s (V,) the gradient of its output, e_t (d,) the gradient of the
embedding's output at position t, and 1_t (V,) is 1 at the id that was looked up there, else 0. With
the rows of both sums behind one another its squared norm is ⟨L Lᵀ, R Rᵀ⟩, where the rows of L are
g_s and 1_t and those of R are x_s and e_t. The inner products of L need only look-ups beside G Gᵀ:
⟨g_s, 1_t⟩ is an entry of g_s, and ⟨1_s, 1_t⟩ is whether the ids are the same. No (V, d) array is
formed.

Source: Li et al. 2022, section 4.2, equation (2), for each of the two without the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Tuple, Union

import numpy as np

from edp_mx.dp.privacy.ghost import dense, explicit

if TYPE_CHECKING:
    from edp_mx.dp.privacy.ghost.next_piece import NextPieceRule
    from edp_mx.dp.privacy.ghost.rule import Norms, Totals
    from edp_mx.dp.privacy.ghost.rules import DenseRule, EmbeddingRule

    Output = Union[DenseRule, NextPieceRule]

Examples = Union[slice, np.ndarray]  # n of N


class TiedRule:
    """The rules of an output layer and of the look-up in the same table, as one; see `Rule`."""

    def __init__(self, output: Output, look_up: EmbeddingRule) -> None:
        self._output, self._look_up = output, look_up
        self.parameters = look_up.parameters

    def squared_norms(self) -> Norms:
        """Yield the squared norms of the table's layer, and of the output layer's own bias."""
        ids, embedded = self._look_up.look_ups()  # (N, …), (N, …, d)
        ids = ids.reshape(len(ids), -1).astype(np.int64)
        norms = squared_norms(self._output, ids, embedded.reshape(*ids.shape, -1))
        yield self._look_up.layer, norms
        yield from self._output.bias_norms()

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        """Add the sums of both, which add up."""
        self._output.add_sums(totals, factors)
        self._look_up.add_sums(totals, factors)


@np.errstate(over="ignore", invalid="ignore")
def squared_norms(output: Output, ids: np.ndarray, embedded: np.ndarray) -> np.ndarray:
    """Return the squared norms of each example's gradient of the table.

    Shapes: ids (N, T), embedded (N, T, d), the gradients of the embedding's output → (N,) float64.
    Edge cases: as of `dense.squared_norms`.
    """
    norms = np.empty(len(ids))
    positions = output.inputs.shape[1] + ids.shape[1]
    for group in explicit.groups(len(ids), 2 * positions**2):
        norms[group], is_exact = _norms(output, ids, embedded, group, np.float32)
        again = np.arange(len(ids))[group][~is_exact]
        if len(again):
            norms[again], _ = _norms(output, ids, embedded, again, np.float64)
    return np.maximum(norms, 0)


def _norms(
    output: Output, ids: np.ndarray, embedded: np.ndarray, which: Examples, dtype: type
) -> Tuple[np.ndarray, np.ndarray]:
    """⟨L Lᵀ, R Rᵀ⟩ of some examples, and whether float32 was enough. Shapes: → (n,) each."""
    gram, across = output.products(which, ids[which], dtype)  # (n, S, S), (n, S, T)
    is_same = (ids[which][:, :, None] == ids[which][:, None]).astype(dtype)  # (n, T, T)
    upper = np.concatenate([gram, across], axis=2)  # (n, S, S + T)
    lower = np.concatenate([np.swapaxes(across, 1, 2), is_same], axis=2)  # (n, T, S + T)
    rows = np.concatenate([output.inputs[which], embedded[which]], axis=1).astype(dtype)
    return dense.gram_norms(dense.gram(rows), np.concatenate([upper, lower], axis=1))
