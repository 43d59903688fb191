"""A graph cut into segments that give each operator's input and its output's gradient."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from edp_mx.dp.privacy.ghost.graph import Entry, Graph, Node, to_symbol, unfit
from edp_mx.dp.privacy.ghost.operands import Operand, operands_of, refusal
from edp_mx.dp.privacy.ghost.segments import Cut, Draft, Segment, Tap
from edp_mx.errors import UserError

LOSS = "NextPieceLoss"  # `models/next_piece_loss.py`: an output layer with its loss
_SHIFTS = 2  # place of an output of it, which the rule reads
TAPPED = ("FullyConnected", "Embedding", "LayerNorm", "Convolution", LOSS)
POSITIONS = "positions"  # a table indexed by position alone, added to the values of each example
OUTPUTS = ("FullyConnected", LOSS)  # one of them may read the same table as one `Embedding`
_MAY_CARRY_POSITIONS = ("expand_dims",)
_ADDITIONS = ("broadcast_add", "elemwise_add")
_ZERO_STATES = ("_zeros", "zeros")
_OURS = "BiLSTM"  # `models/quick/lstm.py`: both directions, without the padding
_LSTMS = ("RNN", _OURS)
# The attributes of MXNet's RNN that `lstm_pass` computes; the last four are its defaults.
_WRITTEN = {"mode": "lstm", "num_layers": "1", "bidirectional": "False",
            "use_sequence_length": "False", "projection_size": "None",
            "lstm_state_clip_min": "None"}  # fmt: skip
Found = Tuple[str, Entry, Tuple[Operand, ...]]  # of a tap: its rule, its input, its operands


class Surgery:
    """Cuts a graph at its LSTMs and puts a probe behind every other operator with parameters.

    A probe is a zero that is added to the operator's output, so that its gradient is the output's.
    The input of a probed operator becomes an output of its segment. With a `precision` below
    float32 a dense layer's input, weight and bias are rounded to it before they are multiplied, and
    so is the gradient that reaches it; so are what it makes and passes on. What a rule reads are
    the input and the gradient before that.

    Guarantee: every trainable parameter of the block is read by exactly one tap or cut, or it is a
    table that one `Embedding` looks up and one output layer has as its weight (`OUTPUTS`); an
    operator with trainable parameters for which there is no rule is refused by name.
    """

    def __init__(self, graph: Graph, trainable: Iterable[str], precision: str) -> None:
        self._graph, self._precision = graph, precision
        self._trainable = set(trainable)
        self._levels = self._find_levels()
        self._lstms = [i for i, node in enumerate(graph.nodes) if node.kind in _LSTMS]
        tapped = self._find_taps()
        self._refuse_uncovered(tapped)
        self.taps: Tuple[Tap, ...] = ()
        self.cuts: Tuple[Cut, ...] = ()
        self.segments: Tuple[Segment, ...] = ()
        last = max(self._level_of(entry) for entry in graph.heads)
        for level in range(last + 1):
            self._cut_out(level, graph.heads if level == last else (), tapped)

    def _find_levels(self) -> List[int]:
        """For each node the number of LSTMs below it, one behind the other.

        A node that draws random numbers and reads neither examples nor parameters takes the level
        of its reader.
        """
        graph = self._graph
        levels: List[int] = []
        for node in graph.nodes:
            levels.append(max((self._level_of(e, levels) for e in node.inputs), default=0))
        for index in reversed(range(len(graph.nodes))):
            reads = graph.has_examples[index] or graph.has_parameters[index]
            if graph.is_random[index] and not reads:
                readers = (i for i, n in enumerate(graph.nodes) if (index, 0) in n.inputs)
                levels[index] = min((levels[i] for i in readers), default=0)
        return levels

    def _level_of(self, entry: Entry, levels: Optional[List[int]] = None) -> int:
        levels = self._levels if levels is None else levels
        return levels[entry[0]] + (self._graph.nodes[entry[0]].kind in _LSTMS)

    def _find_taps(self) -> Dict[int, Found]:
        graph = self._graph
        tapped: Dict[int, Found] = {}
        positions: Dict[int, int] = {}  # node that passes a table's rows on → the table's operator
        for index, node in enumerate(graph.nodes):
            carried = [i for i, _ in node.inputs if i in positions]
            if node.is_variable or graph.is_made_of_parameters(index):
                if node.op == "Embedding":
                    positions[index] = index
                elif carried and node.op in _MAY_CARRY_POSITIONS:
                    positions[index] = positions[carried[0]]
                continue
            if carried and node.op in _ADDITIONS:
                table = positions[carried[0]]
                operands = operands_of(graph, graph.nodes[table])
                tapped[index] = (POSITIONS, graph.nodes[table].inputs[0], operands)
            elif node.kind in TAPPED:
                tapped[index] = (node.kind, node.inputs[0], operands_of(graph, node))
        wanted = self._trainable
        return {i: t for i, t in tapped.items() if any(wanted & {*o.parameters} for o in t[2])}

    def _refuse_uncovered(self, tapped: Dict[int, Found]) -> None:
        """Refuse a trainable parameter that is not read by exactly one tap or cut."""
        graph = self._graph
        read = [operand.parameters for _, _, operands in tapped.values() for operand in operands]
        read += [self._parameters_of_lstm(graph.nodes[index]) for index in self._lstms]
        readers = Counter(chain.from_iterable(read))
        for index, node in enumerate(graph.nodes):
            if graph.is_made_of_parameters(index) or index in tapped or node.kind in _LSTMS:
                continue
            made = [i for i, _ in node.inputs if graph.is_made_of_parameters(i)]
            wild = sorted(self._trainable & {n for i in made for n in graph.parameters_of(i)})
            if wild:
                raise refusal(node, wild)
        for name in sorted(self._trainable):
            if readers[name] != 1 and not (readers[name] == 2 and _is_tied(name, tapped)):
                raise UserError(
                    f"{name}: {'nothing' if readers[name] == 0 else 'more than one operator'} "
                    f"reads it in {graph.block_name}, and ghost clipping wants exactly one; set "
                    "privacy.clipping: loop, or freeze it"
                )

    def _parameters_of_lstm(self, node: Node) -> Tuple[str, ...]:
        """Its parameters, one direction after the other, in the order of `Cut`."""
        return tuple(n for i, _ in node.inputs[1:] for n in self._graph.parameters_of(i))

    def _cut_out(self, level: int, heads: Sequence[Entry], tapped: Dict[int, Found]) -> None:
        nodes, levels = self._graph.nodes, self._levels
        lstms = [i for i in self._lstms if levels[i] == level]
        read = [entry for i in lstms for entry in _read_by_lstm(nodes[i])]
        needed = self._needed([*heads, *read], level)
        draft, taps = Draft(), []
        for i in sorted(needed):
            node = nodes[i]
            if node.kind in _LSTMS:
                draft.raw[i] = draft.add(Node("null", f"{node.name}.states", {}, ()))
                continue
            inputs = [draft.at(entry) for entry in node.inputs]
            draft.raw[i] = draft.add_like(node, inputs, self._precision)
            if i in tapped:
                probe = f"{node.name}.probe"
                terms = ((draft.raw[i], 0), (draft.add(Node("null", probe, {}, ())), 0))
                draft.probed[i] = draft.add(Node("elemwise_add", f"{node.name}.probed", {}, terms))
                taps.append((i, probe))
        draft.outputs += [draft.output(entry) for entry in heads]
        self.cuts += tuple(self._cut(i, draft) for i in lstms)
        self.taps += tuple(self._tap(i, probe, tapped[i], draft) for i, probe in taps)
        self.segments += (Segment(to_symbol(draft.nodes, draft.outputs), len(heads)),)

    def _needed(self, wanted: Sequence[Entry], level: int) -> Set[int]:
        """All nodes of a segment; an LSTM of an earlier segment stands for its states."""
        graph, needed, waiting = self._graph, set(), [i for i, _ in wanted]
        while waiting:
            index = waiting.pop()
            if index in needed:
                continue
            needed.add(index)
            node = graph.nodes[index]
            if node.kind in _LSTMS and self._levels[index] < level:
                continue
            if self._levels[index] < level and not graph.is_portable(index):
                raise unfit(
                    f"{node.name} is read on both sides of an LSTM, which ghost clipping does not "
                    "follow"
                )
            waiting += [i for i, _ in node.inputs]
        return needed

    def _tap(self, index: int, probe: str, found: Found, draft: Draft) -> Tap:
        rule, entry, operands = found
        node = self._graph.nodes[index]
        read = (*node.inputs, (index, _SHIFTS)) if rule == LOSS else (entry,)
        sources = tuple(self._source(each, draft) for each in read)
        return Tap(node, rule, operands, len(self.segments), probe, sources)

    def _source(self, entry: Entry, draft: Draft) -> Union[str, int]:
        """Where a value is read; see `Tap`."""
        graph, name = self._graph, self._graph.nodes[entry[0]].name
        return name if name in (*graph.input_names, *graph.parameters) else draft.show(entry)

    def _cut(self, index: int, draft: Draft) -> Cut:
        """The cut of an LSTM; refused unless `lstm_pass` computes its kind."""
        graph, node = self._graph, self._graph.nodes[index]
        names = self._parameters_of_lstm(node)
        used = {k for n in graph.nodes for i, k in n.inputs if i == index}
        used |= {k for i, k in graph.heads if i == index}
        if len(names) % 4 or used - {0} or not self._is_written_out(node):
            raise refusal(node, names)
        source, *lengths = (draft.expose(entry) for entry in _read_by_lstm(node))
        return Cut(
            node,
            tuple(names[i : i + 4] for i in range(0, len(names), 4)),
            len(self.segments),
            source,
            f"{node.name}.states",
            lengths[0] if lengths else None,
        )

    def _is_written_out(self, node: Node) -> bool:
        """Whether an LSTM is of the kind that `lstm_pass` computes."""
        if node.kind == _OURS:
            return True
        states = [self._graph.nodes[i].op for i, _ in node.inputs[2:]]
        is_known = all(node.attributes.get(key, value) == value for key, value in _WRITTEN.items())
        return is_known and all(op in _ZERO_STATES for op in states)


def _is_tied(name: str, tapped: Mapping[int, Found]) -> bool:
    """Whether a parameter is, as it is, the table of one `Embedding` and one output layer."""
    rules = [rule for rule, _, (first, *_) in tapped.values() if first.is_whole(name)]
    return len(rules) == 2 and "Embedding" in rules and any(rule in OUTPUTS for rule in rules)


def _read_by_lstm(node: Node) -> Sequence[Entry]:
    """The inputs of an LSTM, and the lengths if it is one of ours."""
    return node.inputs[: 2 if node.kind == _OURS else 1]
