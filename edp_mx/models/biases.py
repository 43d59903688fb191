"""Layers whose biases are trained while their weights are frozen.

MXNet's `FullyConnected` on a CPU computes the gradient of its bias only together with that of its
weight: if the weight is frozen, the array of the bias's gradient keeps what it held, without a
word. Here a bias is therefore the weight of an operator of its own, whose input is ones.
"""

from __future__ import annotations

from typing import Any

from gluonnlp.model.bert import DotProductSelfAttentionCell
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models.attention import SelfAttention
from edp_mx.models.trained_part import TrainedPart


class Biases(TrainedPart):
    """An encoder's biases and the offsets of its layer norms.

    Source: Ben Zaken et al. 2022 ("BitFit"); for private training Bu et al. 2022 ("DP-BiTFiT").
    """

    name, endings = "biases", ("bias", "beta")

    def change(self, encoder: gluon.Block, config: Any) -> None:  # noqa: ARG002
        separate_biases(encoder)


def affine(F, x, weight, bias, *, size: int):
    """Return W x + b, each by its own operator. Shapes: (…, d), (p, d), (p,) → (…, p)."""
    ones = F.ones_like(F.slice_axis(x, axis=-1, begin=0, end=1))  # (…, 1)
    given = {"num_hidden": size, "no_bias": True, "flatten": False}
    column = F.reshape(bias, (-1, 1))  # (p, 1)
    return F.FullyConnected(x, weight, **given) + F.FullyConnected(ones, column, **given)


class BiasDense(nn.Dense):
    """Gluon's Dense with a bias of its own, for `flatten=False`."""

    def hybrid_forward(self, F, x, weight, bias):
        out = affine(F, x, weight, bias, size=self._units)
        return out if self.act is None else self.act(out)


class BiasSelfAttention(SelfAttention):
    """`SelfAttention` with biases of their own."""

    def projected(self, F, qkv, weight, bias):
        return affine(F, qkv, weight, bias, size=3 * self.units)


def separate_biases(block: gluon.Block) -> None:
    """Give each dense layer and self-attention below a block biases of their own.

    Raises:
        ValueError: a dense layer flattens its input.
    """
    for child in block._children.values():
        if type(child) is nn.Dense and child.bias is not None:
            if child._flatten:
                raise ValueError(f"{child.name} flattens its input")
            child.__class__ = BiasDense
        elif type(child) is DotProductSelfAttentionCell:
            child.__class__ = BiasSelfAttention
        separate_biases(child)
