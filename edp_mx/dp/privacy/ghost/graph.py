"""The graph of operators of a hybrid block, as MXNet serialises it."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.ndarray import CachedOp

from edp_mx.dp.accounting.clippings import TAKE_LOOP
from edp_mx.errors import UserError

Entry = Tuple[int, int]  # (node, which of its outputs)
_OURS = {"edp_layer_norm": "LayerNorm"}  # operators with the gradients of an operator of MXNet
_RANDOM = ("Dropout", "_random_uniform")  # another run gives other values
_POSITIONS = ("_contrib_arange_like",)  # these read only the shape of their input
_ZEROS = ("zeros_like",)


@dataclass(frozen=True)
class Node:
    """An operator, or a variable (`op` is "null")."""

    op: str
    name: str
    attributes: Mapping[str, str]
    inputs: Tuple[Entry, ...]

    @property
    def is_variable(self) -> bool:
        return self.op == "null"

    @property
    def kind(self) -> str:
        """The name of the operator of MXNet that it is or replaces; for one in Python its own."""
        return self.attributes["op_type"] if self.op == "Custom" else _OURS.get(self.op, self.op)


def unfit(fault: str) -> UserError:
    """Return the error for a network that ghost clipping cannot follow."""
    return UserError(f"{fault}; {TAKE_LOOP}")


class Graph:
    """The operators of a hybrid block in an order in which they can run.

    Args:
        num_inputs: how many inputs it is given; None for those without a default.

    Attributes:
        is_single: whether the block returns one array, not a sequence of them.
        has_examples, has_parameters: for each node, whether its value may differ from example to
            example, or change with a parameter.
        is_random: for each node, whether running it again gives another value.
    """

    def __init__(self, block: gluon.HybridBlock, num_inputs: Optional[int] = None) -> None:
        self.block_name = block.name
        names = tuple(f"{block.name}.{name}" for name in _inputs_of(block, num_inputs))
        self.input_names = names
        variables = [mx.sym.var(name) for name in self.input_names]
        with autograd.train_mode():  # of a branch by `autograd.is_training()`, the steps' own
            outputs = type(block).forward(block, *variables)
        self.is_single = isinstance(outputs, mx.sym.Symbol)
        group = mx.sym.Group([outputs] if self.is_single else list(outputs))
        written = json.loads(group.tojson())
        self.nodes: List[Node] = [
            Node(n["op"], n["name"], n.get("attrs", {}), tuple((i, k) for i, k, _ in n["inputs"]))
            for n in written["nodes"]
        ]
        self.heads: Tuple[Entry, ...] = tuple((i, k) for i, k, _ in written["heads"])
        self.parameters: Dict[str, gluon.Parameter] = dict(block.collect_params().items())
        self._internals = group.get_internals()
        self.has_examples = self._spread(lambda node: node.name in names, stops=_POSITIONS)
        self.has_parameters = self._spread(
            lambda node: node.name in self.parameters, stops=(*_POSITIONS, *_ZEROS)
        )
        self.is_random = self._spread(lambda node: node.kind in _RANDOM)
        for node in self.nodes:
            if node.is_variable and node.name not in (*names, *self.parameters):
                raise unfit(
                    f"{block.name}: {node.name} is neither an input nor a parameter of the block, "
                    "so that ghost clipping cannot follow it"
                )

    def _spread(self, starts: Callable[[Node], bool], stops: Sequence[str] = ()) -> List[bool]:
        """Per node: whether `starts` holds for it or for what it reads, except through `stops`."""
        found: List[bool] = []
        for node in self.nodes:
            reached = any(found[i] for i, _ in node.inputs) and node.op not in stops
            found.append(reached or starts(node))
        return found

    def is_portable(self, index: int) -> bool:
        """Return whether a node can be recomputed elsewhere: same value, no gradient."""
        differs = self.has_examples[index] and self.has_parameters[index]
        return not differs and not self.is_random[index]

    def parameters_of(self, index: int) -> Tuple[str, ...]:
        """Return the parameters that a node's value is made of, in order, each once."""
        node = self.nodes[index]
        if not self.has_parameters[index]:
            return ()
        if node.is_variable:
            return (node.name,)
        found = (name for i, _ in node.inputs for name in self.parameters_of(i))
        return tuple(dict.fromkeys(found))

    def is_made_of_parameters(self, index: int) -> bool:
        """Return whether a node's value is made of parameters alone."""
        return self.has_parameters[index] and not self.has_examples[index]

    def value(self, index: int, variables: Mapping[str, mx.nd.NDArray]) -> mx.nd.NDArray:
        """Return the value of a node that reads no input, given values of its parameters."""
        node = self.nodes[index]
        if node.is_variable:
            return variables[node.name]
        symbol = self._internals[f"{node.name}_output"]
        return CachedOp(symbol)(*[variables[name] for name in symbol.list_inputs()])


def to_symbol(nodes: Sequence[Node], heads: Sequence[Entry]) -> mx.sym.Symbol:
    keys = ("op", "name", "attrs", "inputs")
    rows = [
        (node.op, node.name, dict(node.attributes), [[i, k, 0] for i, k in node.inputs])
        for node in nodes
    ]
    written = {
        "nodes": [dict(zip(keys, row)) for row in rows],
        "arg_nodes": [i for i, node in enumerate(nodes) if node.is_variable],
        "heads": [[i, k, 0] for i, k in heads],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return mx.sym.load_json(json.dumps(written))


def _inputs_of(block: gluon.HybridBlock, number: Optional[int]) -> Sequence[str]:
    """The names of the first inputs of a block, without its own parameters."""
    own = ("F", *block._reg_params)  # noqa: SLF001 (Gluon has no public view)
    asked = [
        parameter
        for name, parameter in inspect.signature(block.hybrid_forward).parameters.items()
        if name not in own and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    if number is None:
        number = sum(parameter.default is inspect.Parameter.empty for parameter in asked)
    if number > len(asked):
        raise unfit(f"{block.name} is given {number} inputs, of which {len(asked)} have a name")
    return [parameter.name for parameter in asked[:number]]
