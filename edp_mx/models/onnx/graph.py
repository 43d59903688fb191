"""A graph of ONNX that grows operator by operator."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np
from mxnet import gluon

from edp_mx.errors import UserError
from edp_mx.runtime.npz import Arrays

OPSET, IR_VERSION = 17, 8  # the first with LayerNormalization; read by ONNX Runtime from 1.13 on
MOST_BYTES = 2_000_000_000  # of weights: a message of Protocol Buffers ends at 2 GiB
Value = str  # the name of a tensor in the graph
Axes = Sequence[str]  # the names of a tensor's axes, whose lengths are free


class _Node(NamedTuple):
    operator: str
    inputs: Tuple[Value, ...]
    output: Value
    attributes: Mapping[str, Any]


class Graph:
    """Operators, the weights that they read, and the inputs, all by name.

    Args:
        weights: by the names of the parameters; the graph has them under the same names.
    """

    def __init__(self, weights: Arrays) -> None:
        self._weights = weights
        self._inputs: Dict[Value, Axes] = {}
        self._nodes: List[_Node] = []
        self._values: Dict[Value, np.ndarray] = {}

    def input(self, name: str, axes: Axes) -> Value:
        """Add an input of whole numbers (int64)."""
        self._inputs[name] = axes
        return name

    def weight(self, parameter: gluon.Parameter) -> Value:
        self._values[parameter.name] = self._weights[parameter.name]
        return parameter.name

    def constant(self, values: Any, dtype: Any = np.int64) -> Value:
        name = f"constant_{len(self._values)}"
        self._values[name] = np.asarray(values, dtype)
        return name

    def apply(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """Return the first output of an operator of ONNX."""
        output = f"{operator}_{len(self._nodes)}"
        self._nodes.append(_Node(operator, inputs, output, attributes))
        return output

    def model(self, outputs: Mapping[str, Tuple[Value, Axes]]) -> Any:
        """Return the `onnx.ModelProto` of what some outputs need, checked.

        Args:
            outputs: by the name that each gets, the value (float32) and its axes.

        Raises:
            UserError: the weights are larger than a file of ONNX may be.
        """
        from onnx import TensorProto, checker, helper, numpy_helper

        nodes = [_Node("Identity", (value,), name, {}) for name, (value, _) in outputs.items()]
        kept, needed = _needed([*self._nodes, *nodes], outputs)
        values = {name: array for name, array in self._values.items() if name in needed}
        if sum(array.nbytes for array in values.values()) > MOST_BYTES:
            raise UserError(
                "the model has more than 2 GB of weights, which no file of ONNX holds; train with "
                "fewer words (data.vocabulary.max_words) or a smaller model"
            )
        tensor = helper.make_tensor_value_info
        inputs = {name: axes for name, axes in self._inputs.items() if name in needed}
        graph = helper.make_graph(
            [helper.make_node(op, ins, [out], **more) for op, ins, out, more in kept],
            "edp_mx",
            [tensor(name, TensorProto.INT64, axes) for name, axes in inputs.items()],
            [tensor(name, TensorProto.FLOAT, axes) for name, (_, axes) in outputs.items()],
            [numpy_helper.from_array(array, name) for name, array in values.items()],
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="edp_mx"
        )
        checker.check_model(model)
        return model


def _needed(nodes: Sequence[_Node], outputs: Mapping[str, Any]) -> Tuple[List[_Node], set]:
    """Return the operators that outputs depend on, in order, and the names of what these read."""
    kept, needed = [], {*outputs}
    for node in reversed(nodes):
        if node.output in needed:
            kept.append(node)
            needed.update(node.inputs)
    return kept[::-1], needed
