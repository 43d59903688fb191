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

from typing import TYPE_CHECKING

import numpy as np

from edp_mx.dp.privacy.ghost import dense, explicit

if TYPE_CHECKING:
    from edp_mx.dp.privacy.ghost.rules import DenseRule, EmbeddingRule, Norms, Totals


class TiedRule:
    """The rules of an output layer and of the look-up in the same table, as one; see `Rule`."""

    def __init__(self, output: DenseRule, look_up: EmbeddingRule) -> None:
        self._output, self._look_up = output, look_up

    def squared_norms(self) -> Norms:
        """Yield the squared norms of the table's layer, and of the output layer's own bias."""
        yield from self._output.tied_norms(self._look_up)

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        """Add the sums of both, which add up."""
        self._output.add_sums(totals, factors)
        self._look_up.add_sums(totals, factors)


@np.errstate(over="ignore", invalid="ignore")
def squared_norms(
    inputs: np.ndarray, gradients: np.ndarray, ids: np.ndarray, embedded: np.ndarray
) -> np.ndarray:
    """Return the squared norms of each example's gradient of the table.

    Shapes: inputs (N, S, d), gradients (N, S, V) of the output layer · ids (N, T), embedded
    (N, T, d), the gradients of the embedding's output → (N,) float64.
    Edge cases: as of `dense.squared_norms`.
    """
    norms = np.empty(len(inputs))
    positions = inputs.shape[1] + ids.shape[1]
    for group in explicit.groups(len(inputs), 2 * positions**2):
        parts = (inputs[group], gradients[group], ids[group], embedded[group])
        left, right = _grams(*parts)  # (n, S + T, S + T) each
        found, is_exact = dense.gram_norms(right, left)
        if not is_exact.all():
            exactly = (part[~is_exact].astype(np.float64) for part in parts)
            found[~is_exact], _ = dense.gram_norms(*_grams(*exactly))
        norms[group] = np.maximum(found, 0)
    return norms


def _grams(inputs, gradients, ids, embedded):
    """L Lᵀ and R Rᵀ of some examples. Shapes: as above → (n, S + T, S + T) each."""
    places = np.broadcast_to(ids[:, None].astype(np.int64), (*gradients.shape[:2], ids.shape[1]))
    across = np.take_along_axis(gradients, places, axis=2)  # (n, S, T)
    is_same = (ids[:, :, None] == ids[:, None]).astype(gradients.dtype)  # (n, T, T)
    upper = np.concatenate([dense.gram(gradients), across], axis=2)  # (n, S, S + T)
    lower = np.concatenate([np.swapaxes(across, 1, 2), is_same], axis=2)  # (n, T, S + T)
    left = np.concatenate([upper, lower], axis=1)
    return left, dense.gram(np.concatenate([inputs, embedded], axis=1))
