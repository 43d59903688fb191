"""Operators of our own in the place of MXNet's slowest ones, on a CPU: same values, faster steps.

They are a library that MXNet loads (`native`). Operators in Python took longer to be called
than to work: MXNet hands each to another thread, while its own spin. Where the package was built
without the library, and on a GPU, MXNet's operators stay. Dropout's masks are then other ones: they
come from the same seeds by another way.
"""

from __future__ import annotations

import mxnet as mx
from gluonnlp.model.bert import DotProductSelfAttentionCell
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models import bilstm
from edp_mx.models.first_max import FirstMax as PlainFirstMax
from edp_mx.models.quick.attention import SelfAttention
from edp_mx.models.quick.dropout import Dropout
from edp_mx.models.quick.first_max import FirstMax
from edp_mx.models.quick.layer_norm import LayerNorm
from edp_mx.models.quick.library import are_loaded
from edp_mx.models.quick.lstm import BiLSTM

_COMPILED = {
    nn.LayerNorm: LayerNorm,
    nn.Dropout: Dropout,
    PlainFirstMax: FirstMax,
    DotProductSelfAttentionCell: SelfAttention,
}


def quicken(block: gluon.Block, context: mx.Context) -> None:
    """Makes the layers below a block ours, where we have a faster one; call it before hybridizing.

    A layer keeps its name and its parameters: only its class, and so its forward pass, changes.

    Raises:
        ValueError: a layer norm is not over the last axis, or a dropout shares its mask.
    """
    if context.device_type != "cpu":
        return
    table = {bilstm.BiLSTM: BiLSTM, **(_COMPILED if are_loaded() else {})}
    for child in block._children.values():
        ours = table.get(type(child))
        if ours is not None:
            child.__class__ = ours
            child.check()
        quicken(child, context)
