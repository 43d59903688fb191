"""Whether the rows that each operator reads are those of the units in their order.

Ghost clipping takes the rows of an operator in equal runs, one run per unit. A network in Python
may arrange them otherwise, also on few batches only: windows of long texts below one another,
sequences sorted by length, a batch that is doubled in training alone. A norm would then be of rows
of several units, and a unit could move the sum by more than C.

The gradient of a row is linear in the losses: with the losses of the units weighted by w, that of a
row of unit u is w_u times as long. Weights that differ by powers of two tell all units apart, and
rounding plays no part.
"""

from __future__ import annotations

from typing import FrozenSet, Iterator, Sequence, Tuple

import numpy as np
from mxnet import gluon

from edp_mx.dp.privacy.ghost.graph import Graph, unfit

APART = 64  # units that one set of weights, 2⁻³² … 2³¹, tells apart
TOLERANCE = 1e-3  # relative to the squared norm of a row
_LEAST = 1e-60  # squared norms below it are float32's smallest numbers, which scaling rounds
# Operators of MXNet that move rows by what they hold, and not by shapes alone.
_MOVING = frozenset(
    ("argsort", "batch_take", "gather_nd", "scatter_nd", "shuffle", "sort", "take", "topk")
)

Squares = Tuple[str, np.ndarray]  # an operator, and the squared norms of its rows' gradients (R,)


def weights_apart(num_units: int) -> Iterator[np.ndarray]:
    """Yield the sets of weights (U,) float32 of which at least one tells two units apart."""
    units, step = np.arange(num_units), 1
    while step == 1 or step < num_units:
        yield np.exp2(units // step % APART - APART // 2).astype(np.float32)
        step *= APART


def refuse_others_rows(
    plain: Sequence[Squares], weighted: Sequence[Squares], weights: np.ndarray
) -> None:
    """Refuse rows whose gradient does not grow as the loss of their unit. Shapes: weights (U,)."""
    for (name, before), (_, after) in zip(plain, weighted):
        if len(before) % len(weights):
            continue  # `rule.refuse_uneven` refuses it
        factors = np.repeat(weights.astype(np.float64) ** 2, len(before) // len(weights))  # (R,)
        expected = before * factors
        is_right = np.abs(after - expected) <= TOLERANCE * expected + _LEAST
        is_right |= ~np.isfinite(before) & ~np.isfinite(after)
        if not is_right.all():
            raise unfit(
                f"{name} reads the rows of a batch in another order than the examples have, or one "
                "row of several examples, which ghost clipping does not follow"
            )


def moves_rows(network: gluon.Block) -> bool:
    """Return whether what a batch holds may decide where its rows lie, beside its shapes."""
    if not isinstance(network, gluon.HybridBlock):
        return True
    return any(node.kind.rpartition("_contrib_")[2] in _MOVING for node in Graph(network).nodes)


def arrangement(inputs: Sequence[Tuple[str, Tuple[int, ...]]], num_units: int) -> FrozenSet[object]:
    """Return what decides, with shapes alone, where rows lie: of each block its inputs' shapes."""
    return frozenset((name, shape[0] / num_units, shape[1:]) for name, shape in inputs)


def squares_of(rows: np.ndarray) -> np.ndarray:
    """Return the squared norms of rows (R, …) in float64, (R,)."""
    flat = rows.reshape(len(rows), -1)
    return np.einsum("ij,ij->i", flat, flat, dtype=np.float64)
