"""The layers on top of an encoder: intent scores, and tag scores with their CRF."""

from __future__ import annotations

from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.models.crf import CRF


class IntentHead(gluon.HybridBlock):
    """A fully connected layer from an utterance's vector to intent scores.

    Shapes: pooled (N, H) → (N, I).
    """

    def __init__(self, input_size: int, num_intents: int, **block: str) -> None:
        super().__init__(**block)
        self.num_intents = num_intents
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
