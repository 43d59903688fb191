"""Operands of an operator: which parameters, and which of their rows, its weight and bias hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.dp.privacy.ghost.graph import Graph, Node, unfit
from edp_mx.errors import UserError

_EXACT_IN_FLOAT32 = 1 << 24


@dataclass(frozen=True, eq=False)
class Operand:
    """The weight or bias that an operator reads.

    Attributes:
        parameters: names of the parameters that it is made of.
        num_rows: rows of the first of them.
        rows: where the rows of each parameter lie; None where it is a single parameter.
    """

    parameters: Tuple[str, ...]
    num_rows: int
    rows: Optional[Dict[str, np.ndarray]] = None

    def is_whole(self, name: str) -> bool:
        """Whether it is a parameter as it is."""
        return self.parameters == (name,) and self.rows is None


def operands_of(graph: Graph, node: Node) -> Tuple[Operand, ...]:
    """Return the weight and the bias of an operator: rows of parameters put together."""
    return tuple(_operand(graph, index) for index, _ in node.inputs[1:])


def refusal(node: Node, names: Sequence[str]) -> UserError:
    """Return the error for an operator without a rule that reads parameters."""
    return unfit(
        f"{node.name} is a {node.kind}, for which ghost clipping has no rule (it reads "
        f"{', '.join(names)})"
    )


def _operand(graph: Graph, index: int) -> Operand:
    names = graph.parameters_of(index)
    shapes = [graph.parameters[name].shape for name in names]
    if graph.nodes[index].is_variable or not names:
        return Operand(names, shapes[0][0] if shapes else 0)
    rows = _rows_of(graph, index, names, shapes)
    if rows is None:
        raise refusal(graph.nodes[index], names)
    return Operand(names, shapes[0][0], rows)


def _rows_of(
    graph: Graph, index: int, names: Sequence[str], shapes: Sequence[Tuple[int, ...]]
) -> Optional[Dict[str, np.ndarray]]:
    """Where the rows of each parameter lie in a node; None if the node is more than those rows.

    The node is computed on parameters that hold distinct numbers: its values show which rows it is
    made of, and its gradients that they reach the parameters unchanged.
    """
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    numbers = np.arange(1, ends[-1] + 1)  # none twice, none zero
    numbers[::3] *= -1
    parts = np.split(numbers, ends[:-1])
    arrays = {n: mx.nd.array(p.reshape(s)) for n, p, s in zip(names, parts, shapes)}
    for array in arrays.values():
        array.attach_grad()
    with autograd.record():
        made = graph.value(index, arrays)  # (P, …)
    value = made.asnumpy().astype(np.int64)
    value = value.reshape(len(value), -1)  # (P, d)
    if len(numbers) >= _EXACT_IN_FLOAT32 or value.size != len(numbers):
        return None
    made.backward(made.detach())  # the gradient of a number is then the number itself
    order = np.argsort(value[:, 0])
    rows = {}
    for name, part in zip(names, parts):
        whole = part.reshape(-1, value.shape[1])
        places = np.searchsorted(value[order, 0], whole[:, 0])
        rows[name] = order[np.minimum(places, len(order) - 1)]
        is_same = np.array_equal(value[rows[name]], whole)
        if not is_same or not np.array_equal(arrays[name].grad.asnumpy().ravel(), part):
            return None
    return rows
