"""The frozen lower layers of a GPT-2, whose states can be stored, and the layers above them."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

from edp_mx.data.batching import Batch
from edp_mx.models.encoder import Encoder, FrozenPart
from edp_mx.models.gpt2.decoder import GPT2, through


class UpperGPT2(gluon.HybridBlock):
    """The layers of a GPT-2 above its frozen ones.

    Args:
        decoder: the whole, whose blocks this one shares.

    Shapes: states below (N, P, H) → states behind the last layer norm (N, P, H).
    """

    def __init__(self, decoder: GPT2) -> None:
        super().__init__(prefix="")
        self.config, self.num_pieces = decoder.config, decoder.num_pieces
        self.layers = nn.HybridSequential(prefix="")
        self.layers.add(*list(decoder.layers)[decoder.config.frozen_layers :])
        self.norm, self.dropout = decoder.norm, decoder.dropout

    def inputs(self, batch, context: mx.Context) -> mx.nd.NDArray:
        """Return the stored states of a batch."""
        return mx.nd.array(batch.inputs.states, ctx=context, dtype="float32")

    def hybrid_forward(self, F, below):
        """See the class."""
        rows = through(F, F.swapaxes(below, 0, 1), self.layers._children.values())  # (P, N, H)
        return F.swapaxes(self.norm(rows), 0, 1)


def frozen_part(decoder: GPT2, rest: Callable[[UpperGPT2], Encoder]) -> Optional[FrozenPart]:
    """Return the embeddings and lowest layers, if they are frozen, and what `rest` makes above."""
    layers = list(decoder.layers)[: decoder.config.frozen_layers]
    lower = [decoder.piece_embedding, decoder.position_weight]
    for layer in layers:
        lower += layer.collect_params().values()
    if not layers or any(p.grad_req != "null" for p in lower):
        return None

    def states(batch: Batch) -> Tuple[np.ndarray, np.ndarray]:
        context = decoder.position_weight.list_ctx()[0]
        pieces, positions = decoder.inputs(batch, context), decoder.position_weight.data(context)
        with autograd.pause(train_mode=False):
            rows = mx.nd.swapaxes(decoder.embedded(mx.nd, pieces, positions), 0, 1)  # (P, N, H)
            rows = mx.nd.swapaxes(through(mx.nd, rows, layers), 0, 1)
        return rows.asnumpy(), batch.pieces.lengths.astype(np.int64)

    return FrozenPart(states, rest(UpperGPT2(decoder)))
