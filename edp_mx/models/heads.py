"""What stands on top of any encoder: pooling and intent layer, slot layer."""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models.crf import CRF
from edp_mx.models.first_max import FirstMax

POOLINGS = ("mean", "max", "first", "last")


class Pooling(gluon.HybridBlock):
    """One vector an utterance, from the states of its tokens; padding is left out.

    Args:
        kind: mean | max | first | last.

    Shapes: states (N, T, H), lengths (N,) → (N, H).
    """

    def __init__(self, kind: str, **block: str) -> None:
        super().__init__(**block)
        if kind not in POOLINGS:
            raise ValueError(f"no pooling {kind!r}; there are {', '.join(POOLINGS)}")
        self._kind = kind
        if kind == "max":
            self.first_max = FirstMax(axis=1)

    def hybrid_forward(self, F, states, lengths):
        """See the class. Shapes: (N, T, H), (N,) → (N, H)."""
        if self._kind == "first":
            return F.squeeze(F.slice_axis(states, axis=1, begin=0, end=1), axis=1)
        by_length = {"sequence_length": lengths, "use_sequence_length": True, "axis": 1}
        if self._kind == "last":
            return F.SequenceLast(states, **by_length)
        if self._kind == "mean":
            total = F.sum(F.SequenceMask(states, **by_length), axis=1)  # (N, H)
            return F.broadcast_div(total, F.expand_dims(lengths, 1))
        lowest = F.SequenceMask(states, value=-3.0e38, **by_length)  # (N, T, H)
        return self.first_max(lowest)  # (N, H)


class IntentHead(gluon.HybridBlock):
    """A fully connected layer: intent scores from an utterance's vector.

    Shapes: pooled (N, H) → (N, I).
    """

    def __init__(self, input_size: int, num_intents: int, **block: str) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.dense = nn.Dense(num_intents, in_units=input_size, prefix="dense_")

    def hybrid_forward(self, F, pooled):  # noqa: ARG002
        """See the class. Shapes: (N, H) → (N, I)."""
        return self.dense(pooled)


class SlotHead(gluon.Block):
    """A fully connected layer from token states to tag scores, and the CRF over them.

    Shapes: states (N, T, H) → emissions (N, T, K).
    """

    def __init__(self, input_size: int, num_slots: int, **block: str) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.dense = nn.Dense(num_slots, flatten=False, in_units=input_size, prefix="dense_")
            self.crf = CRF(num_slots, prefix="crf_")

    def forward(self, states):
        """See the class. Shapes: (N, T, H) → (N, T, K)."""
        return self.dense(states)
