"""The rule of an output layer with its loss, whose scores never exist as a whole.

For one example, the gradient of the table is Σ_s u_s (p_s − e_s) x_sᵀ: x_s (d,) is the state at
place s, p_s (V,) the softmax of its scores, e_s 1 at the target, else 0, and u_s the gradient of
the place's loss. The p_s are made again from block to block of the vocabulary, once for the norms
and once for the sums.
"""

from __future__ import annotations

from typing import List, Mapping, Tuple

import numpy as np

from edp_mx.dp.privacy.ghost import explicit, tied
from edp_mx.dp.privacy.ghost.block import Seen
from edp_mx.dp.privacy.ghost.rule import Norms, Rule, Totals
from edp_mx.runtime import cross_entropy


class NextPieceRule(Rule):
    """`NextPieceLoss`, of S places for each example; those without a target are left out."""

    def __init__(self, seen: Seen, num_examples: int, layer_of: Mapping[str, int]) -> None:
        super().__init__(seen, num_examples, layer_of)
        self._table, targets, shifts = seen.others  # (V, d)
        self.inputs = self._inputs.reshape(num_examples, -1, self._table.shape[1])  # (N, S, d)
        self._upstream = self._gradients.reshape(num_examples, -1)  # (N, S), the u_s
        self._targets = targets.reshape(num_examples, -1).astype(np.int64)  # (N, S)
        self._shifts = shifts.reshape(num_examples, -1, 3)  # (N, S, 3)

    def squared_norms(self) -> Norms:
        nothing = self.inputs[:, :0]  # (N, 0, d): a table that is not tied is not looked up
        yield self.layer, tied.squared_norms(self, self._targets[:, :0], nothing)

    def bias_norms(self) -> Norms:
        """See `DenseRule`: there is no bias."""
        return iter(())

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def products(
        self, which: tied.Examples, ids: np.ndarray, dtype: type
    ) -> Tuple[np.ndarray, np.ndarray]:
        """See `DenseRule`."""
        targets, shifts = self._targets[which], self._shifts[which]  # (n, S), (n, S, 3)
        upstream: np.ndarray = self._upstream[which].astype(dtype)  # (n, S)
        states: np.ndarray = self.inputs[which].astype(dtype, copy=False)  # (n, S, d)
        is_read = targets >= 0  # (n, S)
        counts = is_read.sum(axis=1)
        parts: List[np.ndarray] = [np.zeros((k, k), dtype) for k in counts]  # of the places read
        read = (states[is_read], self._table, targets[is_read], shifts[is_read])
        for _, gradients in cross_entropy.score_gradients(*read):  # (K, v)
            for part, own in zip(parts, np.split(gradients, np.cumsum(counts)[:-1])):
                part += own @ own.T
        gram: np.ndarray = np.zeros((*targets.shape, targets.shape[1]), dtype)  # (n, S, S)
        for whole, places, part in zip(gram, is_read, parts):
            whole[np.ix_(places, places)] = part
        across = np.matmul(states, np.swapaxes(self._table[ids], 1, 2))  # (n, S, T), scores
        across = np.exp(across - shifts[..., :1] - shifts[..., 1:2])
        is_target = targets[:, :, None] == ids[:, None]
        across = np.where(is_read[:, :, None], np.where(is_target, -shifts[..., 2:], across), 0)
        return gram * upstream[:, :, None] * upstream[:, None], across * upstream[:, :, None]

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        """Add Σ_i factors_i · (gradient of example i) to the table's total."""
        arrays = (self._upstream, self.inputs, self._targets, self._shifts)
        factors, upstream, *rest = explicit.contributing(factors, *arrays)
        is_read = rest[1] >= 0  # (n, S)
        states, targets, shifts = (array[is_read] for array in rest)  # (K, …)
        scaled = states * (factors[:, None] * upstream)[is_read][:, None]  # (K, d)
        total = totals[self.parameters[0]]
        for block, gradients in cross_entropy.score_gradients(states, self._table, targets, shifts):
            total[block] += gradients.T @ scaled
