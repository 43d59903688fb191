"""Hybrid blocks run with probes, which record each operator's input and output gradient."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.ndarray import CachedOp

from edp_mx.dp.privacy.ghost.graph import Graph, unfit
from edp_mx.dp.privacy.ghost.lstm import LSTMRun, SeenLSTM, refuse_unused
from edp_mx.dp.privacy.ghost.rows import Squares, squares_of
from edp_mx.dp.privacy.ghost.segments import Cut, Tap
from edp_mx.dp.privacy.ghost.surgery import Surgery
from edp_mx.runtime.arrays import to_numpy

Shape = Tuple[int, ...]
Arrays = Dict[str, mx.nd.NDArray]
_ZEROS = ""  # what no probe is called


class Seen(NamedTuple):
    """A tap's record of N examples; example i is entry i of `axis` (or of N runs along it)."""

    tap: Tap
    inputs: np.ndarray
    gradients: np.ndarray
    axis: int
    others: Tuple[np.ndarray, ...] = ()  # what else the rule reads


class ProbedBlock:
    """Runs one outermost hybrid block of a network, segment after segment.

    The weights are outside the recorded graph: the backward pass computes no gradient of a weight,
    only those of the operators' outputs.
    """

    def __init__(self, block: gluon.HybridBlock, trainable: Sequence[str], precision: str) -> None:
        self.block, self._trainable, self._precision = block, trainable, precision
        self._room: Dict[Tuple[str, str], mx.nd.NDArray] = {}
        self._build(Graph(block))

    def _build(self, graph: Graph) -> None:
        """Prepare a graph of the block's, which depends on how many inputs are given."""
        self._graph = graph
        self._surgery = Surgery(graph, self._trainable, self._precision)
        self._segments = self._surgery.segments
        flags = [("static_alloc", True)]
        self._operators = [CachedOp(segment.symbol, flags) for segment in self._segments]
        self._arguments = [segment.symbol.list_inputs() for segment in self._segments]
        self._shapes: Dict[Tuple[Shape, ...], Dict[str, Shape]] = {}
        self._axes: Dict[str, int] = {}
        self._made: Dict[Tuple[Tuple[Shape, ...], int], List[Tuple[Shape, str]]] = {}
        self.forget()

    def forget(self) -> None:
        """Drop the records of the last run, so that the next may begin."""
        self._values: Arrays = {}
        self._outputs: List[Sequence[mx.nd.NDArray]] = []
        self._probes: Arrays = {}
        self._lstms: Dict[str, LSTMRun] = {}

    def forward(self, *given: Optional[mx.nd.NDArray]) -> Union[mx.nd.NDArray, List[mx.nd.NDArray]]:
        """Run the block, as its own `forward` does; once per loss."""
        inputs = [one for one in given if one is not None]  # what is left out stands at the end
        if any(one is None for one in given[: len(inputs)]):
            raise unfit(f"{self.block.name} is given None in front of another input")
        if self._values:
            raise unfit(
                f"{self.block.name} is used twice in one loss, which ghost clipping does not follow"
            )
        if len(inputs) != len(self._graph.input_names):
            self._build(Graph(self.block, num_inputs=len(inputs)))
        if not self._axes:
            self._find_axes(inputs)
        key = tuple(array.shape for array in inputs)
        if key not in self._shapes:
            self._shapes[key] = self._infer(key)
        shapes = self._shapes[key]
        self._values = dict(zip(self._graph.input_names, inputs))
        for level in range(len(self._operators)):
            arguments = [self._argument(name, level, shapes) for name in self._arguments[level]]
            self._outputs.append(self._run(level, key, arguments))
            for cut in self._cuts_at(level):
                found = self._outputs[level]
                lengths = None if cut.lengths is None else found[cut.lengths]
                run = LSTMRun(cut, self._graph.parameters, found[cut.source], lengths)
                self._lstms[cut.variable], self._values[cut.variable] = run, run.states
        heads = list(self._outputs[-1][: self._segments[-1].num_heads])
        return heads[0] if self._graph.is_single else heads

    def _run(
        self, level: int, key: Tuple[Shape, ...], arguments: List[mx.nd.NDArray]
    ) -> Sequence[mx.nd.NDArray]:
        """Run a segment; what only the rules read lies where it lay in the run before."""
        out = None
        if (key, level) in self._made:
            made, heads = self._made[key, level], self._segments[level].num_heads
            context = arguments[0].context
            out = [mx.nd.empty(shape, context, dtype) for shape, dtype in made[:heads]]
            with autograd.pause():
                out += [
                    self._memory(f"{level}.{k}", shape, context, dtype)
                    for k, (shape, dtype) in enumerate(made[heads:])
                ]
        outputs = self._operators[level](*arguments, out=out)
        outputs = [outputs] if isinstance(outputs, mx.nd.NDArray) else outputs
        if out is None:
            self._made[key, level] = [(one.shape, np.dtype(one.dtype).name) for one in outputs]
        return outputs

    def input_shapes(self) -> List[Shape]:
        """Return the shapes of the inputs of the last run."""
        return [self._values[name].shape for name in self._graph.input_names]

    def row_squares(self) -> List[Squares]:
        """Return the squared norms of the gradients of each operator's rows, (R,) each."""
        taps, lstms = self.seen()
        found = [(t.tap.node.name, squares_of(np.moveaxis(t.gradients, t.axis, 0))) for t in taps]
        return found + [(each.parameters[0], each.sequence_squares()) for each in lstms]

    def backward_through_lstms(self, *, is_kept: bool = False) -> None:
        """Continue where the backward pass of the loss ended: at the last LSTMs.

        `is_kept`: another backward pass through the same run will follow.
        """
        for level in range(len(self._segments) - 1, -1, -1):
            cuts = self._cuts_at(level)
            if not cuts:
                continue
            leaving: Dict[int, np.ndarray] = {}  # autograd takes each head once
            for cut in cuts:
                gradient = self._lstms[cut.variable].go_back()  # (T, N, I)
                before = leaving.get(cut.source)
                leaving[cut.source] = gradient if before is None else before + gradient
            self._go_back(level, leaving, is_kept)

    def _go_back(self, level: int, leaving: Dict[int, np.ndarray], is_kept: bool) -> None:
        """Propagate gradients from outputs of a segment, if anything below needs some."""
        heads = {source: self._outputs[level][source] for source in leaving}
        heads = {source: head for source, head in heads.items() if _carries_gradient(head)}
        if not heads:
            return
        gradients = [mx.nd.array(leaving[k], ctx=head.context) for k, head in heads.items()]
        try:
            autograd.backward(list(heads.values()), gradients, retain_graph=is_kept)
        except mx.MXNetError as error:
            raise unfit(
                f"{self.block.name} has an LSTM, and the loss reads what lies below it by another "
                "way too, which ghost clipping does not follow"
            ) from error

    def seen(self) -> Tuple[List[Seen], List[SeenLSTM]]:
        """Return the records of all taps and cuts; refuse an operator that was not reached."""
        mx.nd.waitall()
        taps = []
        for tap in self._surgery.taps:
            probe = self._probes[tap.probe]
            refuse_unused(probe, tap.node.name)
            inputs, *others = (to_numpy(self._read(place, tap.segment)) for place in tap.sources)
            axis = self._axes[tap.probe]
            taps.append(Seen(tap, inputs, to_numpy(probe.grad), axis, tuple(others)))
        lstms = [seen for cut in self._surgery.cuts for seen in self._lstms[cut.variable].seen()]
        return taps, lstms

    def _read(self, place: Union[str, int], level: int) -> mx.nd.NDArray:
        """Return an input of the block, a parameter's value or an output of a segment."""
        if isinstance(place, int):
            return self._outputs[level][place]
        given = self._values.get(place)
        return self._graph.parameters[place].data() if given is None else given

    def _find_axes(self, inputs: Sequence[mx.nd.NDArray]) -> None:
        """Find the axis of each tapped output along which the examples lie."""
        self._refuse_inputs_across_cuts(inputs)
        shapes = [array.shape for array in inputs]
        one_more = self._infer([(shape[0] + 1, *shape[1:]) for shape in shapes])
        for name, shape in self._infer(shapes).items():
            sizes = zip(shape, one_more[name])
            differing = [axis for axis, (size, other) in enumerate(sizes) if size != other]
            if len(differing) != 1:
                raise unfit(
                    f"{name}: the examples do not lie along one axis of {shape}, so that ghost "
                    "clipping cannot tell them apart"
                )
            self._axes[name] = differing[0]

    def _infer(self, input_shapes: Sequence[Shape]) -> Dict[str, Shape]:
        """Infer the probes' shapes from the shapes of the block's inputs."""
        known = dict(zip(self._graph.input_names, input_shapes))
        probes: Dict[str, Shape] = {}
        for level, segment in enumerate(self._segments):
            symbol = segment.symbol
            names = symbol.list_inputs()
            for name in names:
                if name in self._graph.parameters:
                    known[name] = self._graph.parameters[name].shape
            arguments, outputs, _ = symbol.infer_shape(**{n: known[n] for n in names if n in known})
            found = dict(zip(symbol.list_arguments(), arguments))
            taps = [tap for tap in self._surgery.taps if tap.segment == level]
            probes.update({tap.probe: found[tap.probe] for tap in taps})
            for cut in self._cuts_at(level):
                size = int(cut.node.attributes["state_size"]) * len(cut.parameters)
                known[cut.variable] = (*outputs[cut.source][:2], size)
        return probes

    def _refuse_inputs_across_cuts(self, inputs: Sequence[mx.nd.NDArray]) -> None:
        """Refuse an input that is read behind an LSTM and needs a gradient: part would be lost."""
        behind = {name for names in self._arguments[1:] for name in names}
        for name, array in zip(self._graph.input_names, inputs):
            if name in behind and _carries_gradient(array):
                raise unfit(
                    f"{self.block.name} reads {name} behind an LSTM, and what comes from trainable "
                    "parameters may not be"
                )

    def _argument(self, name: str, level: int, shapes: Dict[str, Shape]) -> mx.nd.NDArray:
        if name in self._graph.parameters:
            return self._graph.parameters[name].data().detach()
        if name in shapes:
            context = self._values[self._graph.input_names[0]].context
            self._probes[name] = self._probe(name, shapes[name], context)
            return self._probes[name]
        value = self._values[name]
        # A backward pass clears the records of a constant, and a second one then fails on it.
        is_constant = level > 0 and name in self._graph.input_names
        return value.detach() if is_constant else value

    def _probe(self, name: str, shape: Shape, context: mx.Context) -> mx.nd.NDArray:
        """Zeros, the same memory for all probes, with reused memory of its own for a gradient."""
        with autograd.pause():
            zero, gradient = (self._memory(key, shape, context) for key in (_ZEROS, name))
        autograd.mark_variables([zero], [gradient])
        return zero

    def _memory(
        self, name: str, shape: Shape, context: mx.Context, dtype: str = "float32"
    ) -> mx.nd.NDArray:
        """Return memory that is kept from run to run; to make it anew takes longer than to fill."""
        size, key = int(np.prod(shape)), (name, dtype)
        if key not in self._room or self._room[key].size < size:
            self._room[key] = mx.nd.zeros(size, context, dtype)
        return self._room[key][:size].reshape(shape)

    def _cuts_at(self, level: int) -> List[Cut]:
        return [cut for cut in self._surgery.cuts if cut.segment == level]


def _carries_gradient(array: mx.nd.NDArray) -> bool:
    """Whether an array is a leaf with a gradient or was computed under `autograd.record()`."""
    if array.grad is not None:
        return True
    try:
        recorded = autograd.get_symbol(array)
    except mx.MXNetError:
        return False
    return len(recorded.get_internals().list_outputs()) > 1
