"""The frozen parameters of an encoder, and its frozen lower part, whose outputs can be stored."""

from __future__ import annotations

from typing import Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.data.batching import Batch
from edp_mx.models.encoder import Encoder, FrozenPart, ModelConfig


def freeze(encoder: Encoder, config: ModelConfig) -> None:
    """Take the gradient from the encoder's parameters that are not trained.

    The family's own settings may have frozen others, which stay frozen.

    Args:
        encoder: without values; its layers are changed as `model.trained` needs it.
    """
    part = config.trained_part
    part.change(encoder, config)
    for name, parameter in encoder.collect_params().items():
        if not part.trains(name):
            parameter.grad_req = "null"


class GivenStates(Encoder):
    """An encoder that is frozen as a whole: its stored outputs, the pooled ones first.

    Args:
        reads_tokens: whether there are the states of tokens; else the pooled ones take their place.

    Shapes: (N, G + T, H) → states (N, T, H), pooled (N, G H).
    """

    def __init__(self, encoder: Encoder, *, reads_tokens: bool) -> None:
        super().__init__(prefix="")
        self._reads_tokens = reads_tokens
        self.output_size, self.num_pooled = encoder.output_size, encoder.num_pooled

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        return (mx.nd.array(batch.inputs.states, ctx=context, dtype="float32"),)

    def hybrid_forward(self, F, rows):
        pooled = F.slice_axis(rows, axis=1, begin=0, end=self.num_pooled)  # (N, G, H)
        if not self._reads_tokens:
            return pooled, F.reshape(pooled, (0, -1))
        states = F.slice_axis(rows, axis=1, begin=self.num_pooled, end=None)  # (N, T, H)
        return states, F.reshape(pooled, (0, -1))


def frozen_part(encoder: Encoder, *, reads_tokens: bool = True) -> Optional[FrozenPart]:
    """Return the part of an encoder that is the same at each step; None where there is none.

    Args:
        reads_tokens: whether the rest of the model reads the states of tokens; else an encoder that
            is frozen as a whole keeps its G pooled vectors alone.
    """
    if any(p.grad_req != "null" for p in encoder.collect_params().values()):
        return encoder.frozen_part()
    context = context_of(encoder)  # once: it looks at all parameters

    def states(batch: Batch) -> Tuple[np.ndarray, np.ndarray]:
        with autograd.pause(train_mode=False):
            tokens, pooled = encoder(*encoder.inputs(batch, context))
        above = pooled.asnumpy().reshape(len(batch), encoder.num_pooled, -1)  # (M, G, H)
        if not reads_tokens:
            return above, np.full(len(batch), encoder.num_pooled)
        rows = np.concatenate([above, tokens.asnumpy()], axis=1)
        return rows, batch.lengths + encoder.num_pooled

    return FrozenPart(states, GivenStates(encoder, reads_tokens=reads_tokens))


def context_of(block: gluon.Block) -> mx.Context:
    """Return the device of a block's parameters."""
    return next(iter(block.collect_params().values())).list_ctx()[0]
