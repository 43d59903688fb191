"""Rules: the formula of each operator, and the parameters that its results belong to."""

from __future__ import annotations

from ast import literal_eval
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import numpy as np

from edp_mx.dp.privacy.ghost import convolution, dense, embedding, explicit, lstm, tied
from edp_mx.dp.privacy.ghost.block import ProbedBlock, Seen
from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.privacy.ghost.lstm import SeenLSTM
from edp_mx.dp.privacy.ghost.next_piece import NextPieceRule
from edp_mx.dp.privacy.ghost.operands import Operand
from edp_mx.dp.privacy.ghost.rule import Norms, Rule, Totals, refuse_uneven, sequences
from edp_mx.dp.privacy.ghost.surgery import LOSS, POSITIONS


class DenseRule(Rule):
    """`FullyConnected`, also with a weight stacked from several parameters, as in attention."""

    def __init__(self, seen: Seen, num_examples: int, layer_of: Mapping[str, int]) -> None:
        if seen.tap.node.attributes.get("flatten", "True") == "True":
            seen = seen._replace(inputs=seen.inputs.reshape(len(seen.inputs), -1))
        super().__init__(seen, num_examples, layer_of)
        self._inputs = self.inputs = sequences(self._inputs)  # (N, T, d)
        self._gradients = sequences(self._gradients)  # (N, T, p)

    def squared_norms(self) -> Norms:
        weight = self._operands[0]
        whole = [layer for o in self._operands for layer, rows in self._parts(o) if rows is None]
        if len(whole) == 2 and whole[0] == whole[1]:
            bias = np.empty(len(self._inputs))
            yield whole[0], dense.squared_norms(self._inputs, self._gradients, bias=bias)
            yield whole[0], bias
            return
        for layer, rows in self._parts(weight):
            yield layer, dense.squared_norms(self._inputs, self._outputs(rows))
        yield from self.bias_norms()

    def products(
        self, which: tied.Examples, ids: np.ndarray, dtype: type
    ) -> Tuple[np.ndarray, np.ndarray]:
        """Return ⟨g_s, g_s'⟩ and ⟨g_s, 1_t⟩ of some examples, in that precision; see `tied`.

        Shapes: ids (n, T), theirs → (n, S, S), (n, S, T).
        """
        gradients: np.ndarray = self._gradients[which].astype(dtype, copy=False)  # (n, S, V)
        places = np.broadcast_to(ids[:, None], (*gradients.shape[:2], ids.shape[1]))
        return dense.gram(gradients), np.take_along_axis(gradients, places, axis=2)

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        weight, *bias = self._operands
        num_outputs = self._gradients.shape[2]
        for total in self._totals(weight, totals, (num_outputs, self._inputs.shape[2])):
            dense.add_weight_sum(total, self._inputs, self._gradients, factors)
        for total in (t for b in bias for t in self._totals(b, totals, (num_outputs,))):
            explicit.add_sum(total, explicit.sums_over_positions(self._gradients), factors)

    def bias_norms(self) -> Norms:
        """Yield the squared norms of a bias of its own, if there is one."""
        for bias in self._operands[1:]:
            for layer, rows in self._parts(bias):
                yield layer, dense.bias_squared_norms(self._outputs(rows))

    def _outputs(self, rows: Optional[np.ndarray]) -> np.ndarray:
        """The gradients of some outputs, or of all. Shapes: → (N, T, rows)."""
        return self._gradients if rows is None else self._gradients[..., rows]

    def _parts(self, operand: Operand) -> Iterator[Tuple[int, Optional[np.ndarray]]]:
        """The layers that have a part in an operand, each with its rows; None for all."""
        names = [name for name in operand.parameters if name in self._layer_of]
        for layer in sorted({self._layer_of[name] for name in names}):
            own = [name for name in names if self._layer_of[name] == layer]
            if operand.rows is None or len(own) == len(operand.parameters):
                yield layer, None
            else:
                yield layer, np.concatenate([operand.rows[name] for name in own])

    def _totals(
        self, operand: Operand, totals: Totals, shape: Tuple[int, ...]
    ) -> Iterator[np.ndarray]:
        """Where to add an operand's sum; stacked sums are split among the parameters afterwards."""
        names = [name for name in operand.parameters if name in totals]
        if not names:
            return
        if operand.rows is None:
            yield totals[names[0]]
            return
        whole = np.zeros(shape, np.float32)
        yield whole
        for name in names:
            total = totals[name]
            total += whole[operand.rows[name]].reshape(total.shape)


class EmbeddingRule(Rule):
    """`Embedding`, and tables that are indexed by position alone."""

    def __init__(self, seen: Seen, num_examples: int, layer_of: Mapping[str, int]) -> None:
        super().__init__(seen, num_examples, layer_of)
        self._inputs = np.broadcast_to(self._inputs, self._gradients.shape[:-1])  # (N, …)

    def squared_norms(self) -> Norms:
        yield self.layer, embedding.squared_norms(*self.look_ups())

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        embedding.add_sum(totals[self.parameters[0]], self._inputs, self._gradients, factors)

    def look_ups(self) -> Tuple[np.ndarray, np.ndarray]:
        """Return the ids, checked, and their outputs' gradients. Shapes: → (N, …), (N, …, d)."""
        embedding.refuse_strangers(self._inputs, self._operands[0].num_rows)
        return self._inputs, self._gradients


class SmallRule(Rule):
    """An operator whose parameters are so small that each example's gradient is kept in memory."""

    def __init__(self, seen: Seen, num_examples: int, layer_of: Mapping[str, int]) -> None:
        super().__init__(seen, num_examples, layer_of)
        self._held: Dict[str, np.ndarray] = {}  # trainable parameters' gradients, (N, …) each

    def _make(self) -> Iterator[Tuple[str, np.ndarray]]:
        """Parameters and their gradients (N, …)."""
        raise NotImplementedError

    def squared_norms(self) -> Norms:
        trainable = self._layer_of.keys()
        wanted = [o.parameters[0] for o in self._operands if trainable & {*o.parameters}]
        self._held = {name: made for name, made in self._make() if name in wanted}
        for name, gradients in self._held.items():
            yield self._layer_of[name], explicit.squared_norms(gradients)

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        for name, gradients in self._held.items():
            explicit.add_sum(totals[name], gradients, factors)


class LayerNormRule(SmallRule):
    """`LayerNorm` over the last axis."""

    def _make(self) -> Iterator[Tuple[str, np.ndarray]]:
        gamma, beta = (operand.parameters[0] for operand in self._operands)
        if int(self._attributes.get("axis", "-1")) not in (-1, self._last_axis):
            raise unfit(f"{gamma}: ghost clipping knows layer norms over the last axis only")
        inputs, gradients = sequences(self._inputs), sequences(self._gradients)  # (N, T, d)
        epsilon = float(self._attributes.get("eps", "1e-5"))
        yield gamma, explicit.gamma_gradients(inputs, gradients, eps=epsilon)
        yield beta, explicit.sums_over_positions(gradients)


class ConvolutionRule(SmallRule):
    """`Convolution` along one axis."""

    def _make(self) -> Iterator[Tuple[str, np.ndarray]]:
        weight, *bias = (operand.parameters[0] for operand in self._operands)
        sizes = {k: literal_eval(self._attributes.get(k, "()")) for k in _WINDOW}
        layout, groups = (self._attributes.get(k, "None") for k in ("layout", "num_group"))
        is_known = layout in ("NCW", "None") and groups in ("1", "None")
        if len(sizes["kernel"]) != 1 or not is_known:
            raise unfit(
                f"{weight}: ghost clipping knows convolutions along one axis in one group only"
            )
        width, stride, pad, dilate = (sizes[k][0] if sizes[k] else d for k, d in _WINDOW.items())
        window = convolution.Window(width, stride, pad, dilate)
        both = self._inputs, self._gradients  # with an axis for a single row, if it is missing
        inputs, gradients = (a if a.ndim == 4 else a[:, None] for a in both)
        yield weight, convolution.weight_gradients(inputs, gradients, window)
        for name in bias:
            yield name, convolution.bias_gradients(gradients)


class LSTMRule:
    """An LSTM that was cut out of its graph; see `Rule`."""

    def __init__(self, seen: SeenLSTM, num_examples: int, layer_of: Mapping[str, int]) -> None:
        refuse_uneven(seen.parameters[0], seen.inputs.shape[1], num_examples)
        self._seen, self._num_examples, self._layer_of = seen, num_examples, layer_of
        self.parameters = seen.parameters

    def squared_norms(self) -> Norms:
        seen = self._seen
        norms = lstm.squared_norms(
            seen.inputs,
            seen.states,
            seen.packing.spread(seen.gates, (*seen.inputs.shape[:2], seen.gates.shape[1])),
            num_examples=self._num_examples,
            is_reverse=seen.is_reverse,
        )
        for name, part in zip(self._seen.parameters, norms):
            if name in self._layer_of:
                yield self._layer_of[name], part

    def add_sums(self, totals: Totals, factors: np.ndarray) -> None:
        seen, mine = self._seen, [totals.get(name) for name in self.parameters]
        arrays = seen.inputs, seen.states, seen.gates
        lstm.clipped_sums(*arrays, seen.packing, factors, totals=mine)


AnyRule = Union[Rule, tied.TiedRule, LSTMRule]
_WINDOW = {"kernel": 1, "stride": 1, "pad": 0, "dilate": 1}  # with MXNet's defaults
_RULES: Dict[str, Type[Rule]] = {
    "FullyConnected": DenseRule,
    "Embedding": EmbeddingRule,
    POSITIONS: EmbeddingRule,
    "LayerNorm": LayerNormRule,
    "Convolution": ConvolutionRule,
    LOSS: NextPieceRule,
}


def rules_of(block: ProbedBlock, num_examples: int, layer_of: Mapping[str, int]) -> List[AnyRule]:
    """Return a rule for each operator with trainable parameters, after the backward pass."""
    taps, lstms = block.seen()
    made = [_RULES[seen.tap.rule](seen, num_examples, layer_of) for seen in taps]
    return _with_ties(made) + [LSTMRule(seen, num_examples, layer_of) for seen in lstms]


def _with_ties(made: Sequence[Rule]) -> List[AnyRule]:
    """Replace the two rules of each table that goes in and out; `Surgery` lets pass no other."""
    outputs = {r.parameters: r for r in made if isinstance(r, (DenseRule, NextPieceRule))}
    tables = {rule.parameters: rule for rule in made if isinstance(rule, EmbeddingRule)}
    shared = outputs.keys() & tables.keys()
    rest = [rule for rule in made if rule.parameters not in shared]
    return [*rest, *(tied.TiedRule(outputs[names], tables[names]) for names in sorted(shared))]
