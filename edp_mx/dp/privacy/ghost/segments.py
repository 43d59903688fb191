"""The parts of a graph that was cut up: operands, taps, cuts and segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple, Union

import mxnet as mx

from edp_mx.dp.privacy.ghost.graph import Entry, Node
from edp_mx.dp.privacy.ghost.operands import Operand
from edp_mx.runtime.precision import FULL


@dataclass(frozen=True, eq=False)
class Tap:
    """An operator with parameters, and the places of its input and its output's gradient.

    Attributes:
        rule: the operator's name, or `surgery.POSITIONS`.
        operands: weight, then bias.
        probe: the zero variable that is added to its output.
        sources: its input, and what else its rule reads: the name of an input or a parameter of
            the block, or an index into the segment's outputs.
    """

    node: Node
    rule: str
    operands: Tuple[Operand, ...]
    segment: int
    probe: str
    sources: Tuple[Union[str, int], ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """An LSTM, of one or two directions, that NumPy runs, since MXNet's hides its gates.

    Attributes:
        parameters: per direction the names of i2h weight, h2h weight, i2h bias, h2h bias.
        segment: the segment of its input; its states go into the next one.
        source: index of its input among that segment's outputs.
        variable: name of its states in later segments.
        lengths: index of the examples' lengths among that segment's outputs; None where all steps
            are read, and padding is masked elsewhere.
    """

    node: Node
    parameters: Tuple[Tuple[str, ...], ...]
    segment: int
    source: int
    variable: str
    lengths: Optional[int] = None


@dataclass(frozen=True, eq=False)
class Segment:
    """The part between two cuts: a symbol, and how many of its first outputs are the block's."""

    symbol: mx.sym.Symbol
    num_heads: int


@dataclass
class Draft:
    """A segment under construction."""

    nodes: List[Node] = field(default_factory=list)
    raw: Dict[int, int] = field(default_factory=dict)  # node of the graph → of the segment
    probed: Dict[int, int] = field(default_factory=dict)  # the same behind its probe
    outputs: List[Entry] = field(default_factory=list)
    shown: Dict[Entry, int] = field(default_factory=dict)  # value → its place among the outputs

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_like(self, node: Node, inputs: Sequence[Entry], precision: str) -> int:
        """Add a node of the graph that reads these values, a dense layer's rounded first."""
        if precision == FULL or node.op != "FullyConnected":
            return self.add(Node(node.op, node.name, node.attributes, tuple(inputs)))
        low = (self._cast(f"{node.name}.low{k}", precision, i) for k, i in enumerate(inputs))
        made = self.add(Node(node.op, node.name, node.attributes, tuple(low)))
        return self._cast(f"{node.name}.full", FULL, (made, 0))[0]

    def _cast(self, name: str, precision: str, entry: Entry) -> Entry:
        return self.add(Node("amp_cast", name, {"dtype": precision}, (entry,))), 0

    def at(self, entry: Entry) -> Entry:
        """Return where a value of the graph is found in the segment."""
        node, output = entry
        if output == 0 and node in self.probed:
            return self.probed[node], 0
        return self.raw[node], output

    def output(self, entry: Entry) -> Entry:
        """Return the place of a value as an output, copied if it is a variable."""
        place = self.at(entry)
        if self.nodes[place[0]].is_variable:
            name = f"{self.nodes[place[0]].name}.copy"
            place = self.add(Node("_copy", name, {}, (place,))), 0
        return place

    def show(self, entry: Entry) -> int:
        """Make a value an output to be read, if it is none yet, and return its index.

        It is read through a copy without gradient: MXNet would create a gradient of zeros for any
        other output that no loss reads, and add it to the true one.
        """
        place = self.at(entry)
        if place not in self.shown:
            name = f"{self.nodes[place[0]].name}.shown{place[1]}"
            self.outputs.append((self.add(Node("BlockGrad", name, {}, (place,))), 0))
            self.shown[place] = len(self.outputs) - 1
        return self.shown[place]

    def expose(self, entry: Entry) -> int:
        """Make a value an output, if it is none yet, and return its index."""
        place = self.output(entry)
        if place not in self.outputs:
            self.outputs.append(place)
        return self.outputs.index(place)
