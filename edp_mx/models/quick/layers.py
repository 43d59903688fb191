"""Gluon's layers as single operators of our own, with the same parameters, for a CPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mxnet.gluon import nn

from edp_mx.models import attention, clc_layers, gelu

DRAWS = 64  # numbers that make a mask; `native/mask.h` has the same


def draws_of(F: Any) -> Any:
    """Return what a dropout mask is made of, (DRAWS,): 0 or 2 at random, all 1 outside training.

    This is MXNet's own dropout of ones: it follows the seed of all of MXNet's dropout, and it knows
    whether the network is training, which MXNet does not tell a library's operators.
    """
    return F.stop_gradient(F.Dropout(F.ones((DRAWS,)), p=0.5))


class Dropout(nn.Dropout):
    """Gluon's Dropout with the same rate and scale, and other masks for the same seed.

    A mask is a hash of the place: it is made again in the backward pass rather than stored.
    """

    def hybrid_forward(self, F, x):
        if self._rate == 0:
            return F.identity(x)
        return F.edp_dropout(x, draws_of(F), rate=repr(self._rate))


class LayerNorm(nn.LayerNorm):
    """Gluon's LayerNorm over the last axis, whose backward pass is the slowest part of a BERT.

    Source: Ba et al. 2016, equation 3.
    """

    def hybrid_forward(self, F, data, gamma, beta):
        return F.edp_layer_norm(data, gamma, beta, eps=repr(self._epsilon))


class FirstMax(clc_layers.FirstMax):
    """`clc_layers.FirstMax` in one pass; NaN counts as larger than every number."""

    def hybrid_forward(self, F, values):
        return F.edp_first_max(values, axis=str(self._axis))[0]


class TanhGELU(gelu.TanhGELU):
    """`gelu.TanhGELU` in one pass, as is its gradient."""

    def hybrid_forward(self, F, values):
        return F.edp_gelu(values)


class SelfAttention(attention.SelfAttention):
    """GluonNLP's self-attention as one matrix product and one operator over its result.

    Shapes: qkv (T, N, C), valid lengths (N, T) → (T, N, C), (N·heads, T, ≥ T).
    Source: Vaswani et al. 2017, equation 1.
    Departs: the second output holds the attention weights before dropout, with a minus sign where
    dropout removed them and zeros beyond column T. Nothing reads it.
    """

    def attend(self, F, projected, valid_len):
        return F.edp_attention(
            projected,
            F.cast(valid_len, "float32"),
            draws_of(F),
            heads=str(self._num_heads),
            rate=repr(self.dropout_layer._rate),
        )


@lru_cache(maxsize=None)
def faster_attention(kind: type) -> Any:
    """Return a kind of `attention.SelfAttention` that attends as `SelfAttention` here does."""
    return type(kind.__name__, (kind, SelfAttention), {})
