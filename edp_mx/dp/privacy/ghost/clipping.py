"""Ghost clipping: the clipped sum of gradients without computing the gradient of any unit."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Callable, Dict, Hashable, Iterator, List, Mapping, Optional, Set, Tuple, TypeVar

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from threadpoolctl import ThreadpoolController

from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.clipping import Losses
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.block import ProbedBlock
from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.privacy.ghost.rows import (
    Squares,
    arrangement,
    moves_rows,
    refuse_others_rows,
    weights_apart,
)
from edp_mx.dp.privacy.ghost.rules import AnyRule, EmbeddingRule, rules_of
from edp_mx.dp.privacy.norm_clipping import NormClipping
from edp_mx.errors import UserError
from edp_mx.runtime.precision import FULL
from edp_mx.runtime.threads import allowed_threads, in_threads

Result = TypeVar("Result")


class GhostClipping(NormClipping):
    """Clipping from each operator's input and the gradient of its output.

    A parameter's gradient is, row by row of a batch, a product of the two. The norm of a unit's
    gradient follows without forming the product, and the clipped sum is computed from the same two
    ("book-keeping"). A unit may have several rows of the batch (a micro-batch, a user), if these
    follow one another and all units of a chunk have the same number of rows.

    Args:
        network: its hybrid blocks hold all trainable parameters, each read by one operator.
        precision: of the products of dense layers in both passes. Norms and sums are made of the
            same inputs and gradients in float32, so that no clipped sum is longer for it.
        checks_rows: whether the order of rows is checked, by more backward passes: in each chunk,
            or, of a network that is one hybrid block, in each whose inputs have new shapes.

    Raises:
        UserError: an operator without a rule, or a parameter that is not read exactly once.
            Problems that show only in a loss are refused at the first `clip`.

    Source: Li et al. 2022, section 4 and appendix F; Bu et al. 2022 for the single pass.
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        network: gluon.Block,
        release: Release,
        chunk_size: int,
        precision: str = FULL,
        checks_rows: bool = False,
    ) -> None:
        super().__init__(flat=flat, release=release, chunk_size=chunk_size)
        self._layer_of = {
            p.name: k for k, layer in enumerate(flat.layers) for p in layer.parameters
        }
        self._sizes = {p.name: int(np.prod(p.shape)) for k in flat.layers for p in k.parameters}
        self._blocks = _probed_blocks(network, self._layer_of, precision)
        self._called: List[ProbedBlock] = []
        self._network, self._precision, self._checks_rows = network, precision, checks_rows
        self._moves_rows = checks_rows and moves_rows(network)
        self._known: Set[Hashable] = set()  # arrangements of rows that were found to be right
        self._products = ThreadpoolController()

    def in_full(self) -> NormClipping:
        if self._precision == FULL:
            return self
        return GhostClipping(
            flat=self.flat,
            network=self._network,
            release=self.release,
            chunk_size=self.chunk_size,
            checks_rows=self._checks_rows,
        )

    def squared_norms(self, losses: Losses) -> np.ndarray:
        rules, made = self._rules_of(losses)
        return self._squares(rules, len(made))

    def _add(self, losses: Losses) -> Tuple[np.ndarray, float, mx.nd.NDArray]:
        rules, made = self._rules_of(losses)
        factors = self._factors(self._squares(rules, len(made)))  # (U,)
        total, threads = self.flat.gradients(), allowed_threads()  # (P,)
        in_threads(lambda part: part.fill(0), np.array_split(total, threads), threads=threads)
        totals = self.flat.views(total)
        self._of_each(rules, lambda rule: rule.add_sums(totals, factors))
        return total, 1.0, made

    def _rules_of(self, losses: Losses) -> Tuple[List[AnyRule], mx.nd.NDArray]:
        """Run a forward and a backward pass; return their rules and the losses (U,)."""
        for block in self._blocks:
            block.forget()
        self._called.clear()
        with self._probing(), autograd.record():
            made = losses()  # (U,)
        if made.ndim != 1:
            raise UserError(
                f"a chunk has losses of shape {made.shape}; ghost clipping takes one per unit"
            )
        for unused in (block for block in self._blocks if block not in self._called):
            raise UserError(
                f"the loss does not use {unused.block.name}; freeze its parameters (grad_req "
                "'null') or leave it out of the network"
            )
        new = self._new_arrangement(len(made))
        weighted = []
        for weights in weights_apart(len(made)) if new else ():
            self._backward(made, weights=weights)
            weighted.append((weights, self._row_squares()))
        self._backward(made)
        for weights, squares in weighted:
            refuse_others_rows(self._row_squares(), squares, weights)
        if new:
            self._known.add(new)
        rules = [r for b in self._called for r in rules_of(b, len(made), self._layer_of)]
        return rules, made

    def _backward(self, made: mx.nd.NDArray, *, weights: Optional[np.ndarray] = None) -> None:
        """Differentiate the sum of the losses; weighted ones (U,) can be differentiated again."""
        is_kept = weights is not None
        head = None if weights is None else mx.nd.array(weights, ctx=made.context)
        made.backward(head, retain_graph=is_kept)
        for block in reversed(self._called):
            block.backward_through_lstms(is_kept=is_kept)

    def _new_arrangement(self, num_units: int) -> Optional[Hashable]:
        """Return the arrangement of the last run's rows if they are to be checked; see `rows`."""
        if not self._checks_rows:
            return None
        shapes = [(b.block.name, shape) for b in self._called for shape in b.input_shapes()]
        found = arrangement(shapes, num_units)
        return found if self._moves_rows or found not in self._known else None

    def _row_squares(self) -> List[Squares]:
        return [each for block in self._called for each in block.row_squares()]

    def _squares(self, rules: List[AnyRule], num_units: int) -> np.ndarray:
        """Squared norms of each unit and layer, (U, L) float64."""
        norms = self._of_each(rules, lambda rule: list(rule.squared_norms()))
        squares = np.zeros((num_units, len(self.flat.layers)))  # (U, L)
        for layer, part in chain.from_iterable(norms):
            squares[:, layer] += part
        return squares

    def _of_each(self, rules: List[AnyRule], work: Callable[[AnyRule], Result]) -> List[Result]:
        """Return what a function returns of each rule; several at once, large products alone."""
        threads = allowed_threads()
        large: List[AnyRule] = []
        small: List[AnyRule] = []
        for rule in rules:
            size = sum(self._sizes.get(name, 0) for name in rule.parameters)
            is_product = not isinstance(rule, EmbeddingRule)  # by BLAS, on all threads
            is_large = is_product and threads * size > self.flat.size
            (large if is_large else small).append(rule)
        done = [work(rule) for rule in large]
        # In each thread BLAS has one of its own: more would wait for each other.
        with self._products.limit(limits=1 if threads > 1 else None, user_api="blas"):
            return done + in_threads(work, small, threads=threads)

    @contextmanager
    def _probing(self) -> Iterator[None]:
        """Let the network's hybrid blocks run with their probes."""
        for probed in self._blocks:
            probed.block.forward = partial(self._run, probed)
        try:
            yield
        finally:
            for probed in self._blocks:
                del probed.block.forward  # the method of the class is visible again

    def _run(self, probed: ProbedBlock, *inputs: mx.nd.NDArray):
        self._called.append(probed)
        return probed.forward(*inputs)


def _probed_blocks(
    network: gluon.Block, layer_of: Mapping[str, int], precision: str
) -> List[ProbedBlock]:
    """The outermost hybrid blocks with trainable parameters, each of which is in exactly one."""
    owner: Dict[str, str] = {}
    found: List[ProbedBlock] = []
    for block in _outermost(network):
        names = [name for name in block.collect_params() if name in layer_of]
        for name in names:
            if name in owner:
                raise unfit(
                    f"{name} is shared by {owner[name]} and {block.name}, which ghost clipping "
                    "does not follow"
                )
            owner[name] = block.name
        if names:
            found.append(ProbedBlock(block, names, precision))
    for name in layer_of:
        if name not in owner:
            raise unfit(f"{name} is in no hybrid block, so that ghost clipping cannot follow it")
    return found


def _outermost(block: gluon.Block) -> Iterator[gluon.HybridBlock]:
    """Hybrid blocks that are in no other hybrid block, in order."""
    if isinstance(block, gluon.HybridBlock):
        yield block
        return
    for child in block._children.values():  # noqa: SLF001 (Gluon has no public view)
        yield from _outermost(child() if not isinstance(child, gluon.Block) else child)
