"""Faster operators in place of MXNet's slowest ones on a CPU, with the same values.

They are a library that MXNet loads (`native`): operators in Python take longer to be called than
to work. Dropout draws its masks from the same seeds in another way.
"""

from __future__ import annotations

from typing import Any

import mxnet as mx
from gluonnlp.model.bert import DotProductSelfAttentionCell
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models import attention, clc_layers, gelu
from edp_mx.models.quick.layers import (
    Dropout,
    FirstMax,
    LayerNorm,
    SelfAttention,
    TanhGELU,
    faster_attention,
)
from edp_mx.models.quick.library import load_operators
from edp_mx.models.quick.lstm import BiLSTM

_FASTER = {
    nn.LayerNorm: LayerNorm,
    nn.Dropout: Dropout,
    clc_layers.FirstMax: FirstMax,
    gelu.TanhGELU: TanhGELU,
    DotProductSelfAttentionCell: SelfAttention,
    clc_layers.BiLSTM: BiLSTM,
}


def quicken(block: gluon.Block, context: mx.Context) -> None:
    """Replace the layers below a block by our faster ones; call it before hybridizing.

    A layer keeps its name and its parameters: only its class, and so its forward pass, changes.
    """
    if context.device_type != "cpu":
        return
    load_operators()
    for child in block._children.values():
        kind: Any = type(child)
        faster = _FASTER.get(kind)
        if isinstance(child, attention.SelfAttention) and not isinstance(child, SelfAttention):
            faster = faster_attention(kind)
        if faster is not None:
            _check(child)
            child.__class__ = faster
        quicken(child, context)


def _check(layer: gluon.Block) -> None:
    """Refuse a layer whose settings our operators do not support."""
    if isinstance(layer, nn.LayerNorm) and layer._axis != -1:
        raise ValueError(f"{layer.name} normalises over axis {layer._axis}, not the last axis")
    if isinstance(layer, nn.Dropout) and layer._axes:
        raise ValueError(f"{layer.name} shares its mask along {layer._axes}")
