"""The layers k of Algorithm 1: which parameters share one scale α_k."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List, Sequence, Set, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

from edp_mx.errors import UserError


@dataclass(frozen=True)
class Layer:
    """The trainable parameters that one Gluon block owns itself (not those of its children)."""

    name: str
    parameters: Tuple[gluon.Parameter, ...]

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(sum(np.prod(parameter.shape) for parameter in self.parameters))

    def describe(self) -> Dict[str, object]:
        names = {parameter.name: list(parameter.shape) for parameter in self.parameters}
        return {"name": self.name, "size": self.size, "parameters": names}


def layers_of(network: gluon.Block) -> Tuple[Layer, ...]:
    """Group the trainable parameters of a network by the block that owns them.

    A parameter that two blocks share belongs to the first of them. The order is that of the
    blocks in the network, which is the same on every worker. Frozen parameters are in no layer:
    they get neither gradient nor noise. A network that breaks the guarantee is refused.

    Source: eDP-SGD, section 3, "Scaling": "given a set of parameters w^k (e.g. those drawn from
    the k-th layer)".
    """
    refuse_unsafe(network)
    seen: Set[str] = set()
    layers: List[Layer] = []
    for block in _blocks(network):
        own = [
            p
            for p in block._reg_params.values()  # noqa: SLF001 (Gluon has no public view)
            if p.grad_req != "null" and p.name not in seen
        ]
        seen.update(p.name for p in own)
        if own:
            layers.append(Layer(block.name, tuple(own)))
    trainable = {p.name for p in network.collect_params().values() if p.grad_req != "null"}
    if trainable != seen:
        missing = ", ".join(sorted(trainable - seen))
        raise UserError(f"these parameters belong to no block and would not be clipped: {missing}")
    return tuple(layers)


def refuse_unsafe(network: gluon.Block) -> None:
    """Refuse whatever lets an example reach the release without being clipped.

    Raises:
        UserError: BatchNorm (mixes the examples of a batch, and its running statistics are
            released unclipped), sparse gradients (the rows that were touched leak), accumulating
            gradients (would be used twice), mixed dtypes, or several devices.
    """
    for block in _blocks(network):
        if any("BatchNorm" in kind.__name__ for kind in type(block).__mro__):
            raise UserError(
                f"the block {block.name} is a {type(block).__name__}: it mixes the "
                "examples of a batch and cannot be trained with privacy; use LayerNorm"
            )
        if _has_stale_bias(block):
            raise UserError(
                f"{block.name} has a trained bias and a frozen weight: MXNet gives such a bias no "
                "gradient; train both or none, or add the bias by a block of your own"
            )
    trainable = [p for p in network.collect_params().values() if p.grad_req != "null"]
    for parameter in trainable:
        if parameter.grad_req != "write":
            raise UserError(
                f"{parameter.name} has grad_req={parameter.grad_req!r}: an accumulated "
                "gradient would be privatised twice; use 'write'"
            )
        if parameter._grad_stype != "default" or parameter._stype != "default":
            raise UserError(
                f"{parameter.name} has sparse gradients: which rows are touched shows "
                "who is in the data; use sparse_grad=False"
            )
        if np.dtype(parameter.dtype) != np.float32:
            raise UserError(
                f"{parameter.name} is {np.dtype(parameter.dtype).name}: all trainable "
                "parameters must be float32, so that one norm covers them"
            )
        if len(parameter._ctx_list or ()) > 1:
            raise UserError(
                f"{parameter.name} is on several devices: a worker has one; initialise the network "
                "on one, and start several workers"
            )
    if not trainable:
        raise UserError("the network has no trainable parameter")


def _has_stale_bias(block: gluon.Block) -> bool:
    """Whether MXNet's operator of a dense layer leaves the gradient of its bias as it was."""
    if not isinstance(block, nn.Dense) or type(block).hybrid_forward is not nn.Dense.hybrid_forward:
        return False
    is_trained = block.bias is not None and block.bias.grad_req != "null"
    return is_trained and block.weight.grad_req == "null"


def try_out(network: gluon.Block, losses: Sequence[Callable[[], mx.nd.NDArray]]) -> None:
    """Settle the shapes that Gluon has left open; refuse a network whose passes write parameters.

    A running mean of what it saw would be part of the trained network, and no noise would be on it.
    MXNet writes that of a BatchNorm in the backward pass. Losses or gradients that are not finite,
    of which nothing can be learned, are refused, too.
    """
    with autograd.predict_mode():
        losses[0]()
    before = digests_of(network.collect_params().values())
    trainable = [p for p in network.collect_params().values() if p.grad_req != "null"]
    unused = {p.name for p in trainable}
    for loss in losses:
        for parameter in trainable:
            parameter.data()._fresh_grad = False
        with autograd.record():
            made = loss()
        made.backward()
        unused -= {p.name for p in trainable if p.data()._fresh_grad}
        gradients = (p.grad() for p in trainable)
        if not all(np.isfinite(array.asnumpy()).all() for array in (made, *gradients)):
            raise UserError(
                "the loss of the first examples or its gradient is not finite: look for NaN and "
                "infinity in their inputs and labels, in the weights and in the loss"
            )
    if unused:
        raise UserError(
            f"the loss does not use {', '.join(sorted(unused))}: freeze what is not to be trained "
            "(grad_req 'null'), or leave it out of the network"
        )
    after = digests_of(network.collect_params().values())
    for name, parameter in network.collect_params().items():
        if after[name] != before[name]:
            raise UserError(
                f"a pass through the network changes {name}, such as a running mean: that would be "
                "kept without noise, and no epsilon covers it; take it out of the network"
            )
        if parameter.grad_req != "null":
            parameter.zero_grad()


def digests_of(parameters: Iterable[gluon.Parameter]) -> Dict[str, bytes]:
    """Return the SHA-256 of each parameter's values, by its name."""
    mx.nd.waitall()
    return {p.name: hashlib.sha256(p.data().asnumpy().tobytes()).digest() for p in parameters}


def _blocks(network: gluon.Block) -> Iterator[gluon.Block]:
    """The block and all below it, in order."""
    yield network
    for child in network._children.values():
        yield from _blocks(
            child() if callable(child) and not isinstance(child, gluon.Block) else child
        )
