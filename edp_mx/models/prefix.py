"""Trained keys and values that all utterances share, before the ones of their own pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List

import mxnet as mx
from mxnet import gluon

from edp_mx.models.attention import SelfAttention
from edp_mx.models.trained_part import TrainedPart
from edp_mx.runtime.limits import MOST_WIDE
from edp_mx.runtime.settings import Settings, setting

VECTORS = "trained_prefix_vectors"  # how the parameters' names end


class Prefix(gluon.HybridBlock):
    """Keys and values of L places, put before the projections of a layer.

    Shapes: queries, keys and values (T, N, 3C) → (L + T, N, 3C), with queries of 0.
    """

    def __init__(self, length: int, width: int, *, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self._length, self._width = length, width
        with self.name_scope():
            self.vectors = self.params.get("vectors", shape=(length, 2 * width))

    def hybrid_forward(self, F, projected, vectors):
        length, width = self._length, self._width
        first = F.zeros_like(F.slice_axis(projected, axis=0, begin=0, end=1))  # (1, N, 3C)
        rows = F.tile(first, reps=(length, 1, 1))  # (L, N, 3C)
        queries = F.slice_axis(rows, axis=2, begin=0, end=width)  # (L, N, C)
        others = F.slice_axis(rows, axis=2, begin=width, end=None)  # (L, N, 2C)
        places = F.contrib.arange_like(rows, axis=0)  # (L,)
        looked_up = F.Embedding(places, vectors, input_dim=length, output_dim=2 * width)  # (L, 2C)
        others = F.broadcast_add(others, F.expand_dims(looked_up, axis=1))
        return F.concat(F.concat(queries, others, dim=2), projected, dim=0)

    def keys_and_values(self, count: int, context: mx.Context) -> List[mx.nd.NDArray]:
        """Return them for some utterances. Shapes: → (N, L, C) each."""
        both = mx.nd.expand_dims(self.vectors.data(context), axis=0)  # (1, L, 2C)
        return mx.nd.split(mx.nd.broadcast_axis(both, axis=0, size=count), axis=2, num_outputs=2)


class PrefixSelfAttention(SelfAttention):
    """`SelfAttention` over a trained prefix and the pieces.

    Source: Li & Liang 2021 ("Prefix-tuning"), section 4.2.
    Departs: the vectors themselves are trained, as in Liu et al. 2022 ("P-tuning v2").
    """

    trained_prefix: Prefix
    length: int

    def attend(self, F, projected, valid_len):
        """See `SelfAttention`; the prefix is always visible, and what it would see is dropped."""
        counts = F.slice_axis(valid_len, axis=1, begin=0, end=1)  # (N, 1)
        visible = F.concat(F.tile(counts, reps=(1, self.length)), valid_len, dim=1) + self.length
        context, weights = super().attend(F, self.trained_prefix(projected), visible)
        return F.slice_axis(context, axis=0, begin=self.length, end=None), weights


@dataclass(frozen=True)
class PrefixSettings(Settings):
    """Settings of a trained prefix.

    Attributes:
        prefix_length: number of keys and values of a prefix.
    """

    prefix_length: int = setting(10, at_least=1, at_most=MOST_WIDE)


class TrainedPrefix(TrainedPart):
    """Prefixes of a transformer's layers from `frozen_layers` on."""

    name, settings, endings = "prefix", PrefixSettings, (VECTORS,)
    is_merged = False

    def change(self, encoder: gluon.Block, config: Any) -> None:
        length = config.prefix_length
        for attention in encoder.adaptable(config.frozen_layers).attentions:
            attention.__class__ = PrefixSelfAttention
            attention.length = length
            with attention.name_scope():
                attention.trained_prefix = Prefix(length, attention.units, prefix="trained_prefix_")
