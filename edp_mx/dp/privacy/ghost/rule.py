"""What all rules have in common: an operator's arrays, one example behind the other."""

from __future__ import annotations

from typing import Iterator, Mapping, Tuple

import numpy as np

from edp_mx.dp.privacy.ghost.block import Seen
from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.privacy.ghost.surgery import POSITIONS

Totals = Mapping[str, np.ndarray]  # parameter → where its sum is added up
Norms = Iterator[Tuple[int, np.ndarray]]  # layer, squared norms (N,)


class Rule:
    """Squared norms and sums of one operator, from its inputs and the gradients of its outputs.

    An example of the formulas is here a unit: a row of the batch, or several in succession.
    """

    def __init__(self, seen: Seen, num_examples: int, layer_of: Mapping[str, int]) -> None:
        self._operands = seen.tap.operands
        self._attributes = seen.tap.node.attributes
        self._layer_of = layer_of
        self._last_axis = seen.inputs.ndim - 1
        self._inputs = seen.inputs
        refuse_uneven(seen.tap.node.name, seen.gradients.shape[seen.axis], num_examples)
        self._gradients = by_example(seen.gradients, seen.axis, num_examples)
        if seen.tap.rule != POSITIONS:  # there the same inputs serve all examples
            self._inputs = by_example(seen.inputs, seen.axis, num_examples)

    @property
    def parameters(self) -> Tuple[str, ...]:
        """The parameters that its weight is made of."""
        return self._operands[0].parameters

    @property
    def layer(self) -> int:
        """The layer of its weight, a single parameter."""
        return self._layer_of[self.parameters[0]]

    def squared_norms(self) -> Norms:
        """Yield the squared norms of each layer's parameters in this operator."""
        raise NotImplementedError

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        """Add Σ_i factors_i · (gradient of example i) to the totals. Shapes: factors (N,)."""
        raise NotImplementedError


def refuse_uneven(name: str, num_rows: int, num_examples: int) -> None:
    if num_rows % num_examples:
        raise unfit(
            f"{name} reads {num_rows} rows of {num_examples} examples, which ghost clipping does "
            "not follow"
        )


def by_example(values: np.ndarray, axis: int, num_examples: int) -> np.ndarray:
    """Examples first: (N, …) of an array with its rows along an axis, (N, rows, …) for several.

    The rows of an example must follow one another; `check.refuse_wrong` checks that.
    """
    rows = np.moveaxis(values, axis, 0)
    if len(rows) == num_examples:
        return rows
    return rows.reshape(num_examples, -1, *rows.shape[1:])


def sequences(values: np.ndarray) -> np.ndarray:
    """(N, T, d), of (N, d) or of more axes in the middle."""
    return values if values.ndim == 3 else values.reshape(len(values), -1, values.shape[-1])
