"""Which parts of a model are trained, and the frozen lower part, whose outputs can be stored."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from edp_mx.data.batching import Batch
from edp_mx.models.biases import separate_biases
from edp_mx.models.encoder import Encoder, FrozenPart
from edp_mx.models.lora import is_adapter
from edp_mx.models.prefix import VECTORS
from edp_mx.models.rgp import is_carrier

_BIASES = ("bias", "beta")


def freeze(encoder: Encoder, trained: str) -> None:
    """Take the gradient from the encoder's parameters that are not trained.

    Args:
        trained: all | heads (the encoder is frozen) | biases (its biases and the offsets of its
            layer norms are trained) | lora (its adapters are) | prefix (its prefixes are) | rgp
            (the carriers of its weights' gradients have gradients). What the family's own settings
            freeze stays frozen.

    Source: Ben Zaken et al. 2022 ("BitFit"); for private training Bu et al. 2022 ("DP-BiTFiT").
        Others: see `lora`, `prefix` and `rgp`.
    """
    is_trained: Callable[[str], bool] = {
        "all": lambda name: True,  # noqa: ARG005
        "heads": lambda name: False,  # noqa: ARG005
        "biases": lambda name: name.endswith(_BIASES),
        "lora": is_adapter,
        "prefix": lambda name: name.endswith(VECTORS),
        "rgp": is_carrier,
    }[trained]
    if trained == "biases":
        separate_biases(encoder)
    for name, parameter in encoder.collect_params().items():
        if not is_trained(name):
            parameter.grad_req = "null"


class GivenStates(Encoder):
    """What is left of an encoder that is frozen as a whole: its outputs, the pooled ones first.

    Args:
        reads_tokens: whether there are the states of tokens; else the pooled ones take their place.

    Shapes: (N, G + T, H) → states (N, T, H), pooled (N, G H).
    """

    def __init__(self, encoder: Encoder, *, reads_tokens: bool) -> None:
        super().__init__(prefix="")
        self._reads_tokens = reads_tokens
        self.output_size, self.num_pooled = encoder.output_size, encoder.num_pooled

    def inputs(self, batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        """See `Encoder`."""
        return (mx.nd.array(batch.inputs.states, ctx=context, dtype="float32"),)

    def hybrid_forward(self, F, rows):
        """See the class."""
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

    def states(batch: Batch) -> Tuple[np.ndarray, np.ndarray]:
        with autograd.pause(train_mode=False):
            tokens, pooled = encoder(*encoder.inputs(batch, context_of(encoder)))
        above = pooled.asnumpy().reshape(len(batch), encoder.num_pooled, -1)  # (M, G, H)
        if not reads_tokens:
            return above, np.full(len(batch), encoder.num_pooled)
        rows = np.concatenate([above, tokens.asnumpy()], axis=1)
        return rows, batch.lengths + encoder.num_pooled

    return FrozenPart(states, GivenStates(encoder, reads_tokens=reads_tokens))


def context_of(block: gluon.Block) -> mx.Context:
    """Return the device of a block's parameters."""
    return next(iter(block.collect_params().values())).list_ctx()[0]
