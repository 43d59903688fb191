"""From many vectors to one: a maximum along an axis, and the pooling of token states."""

from __future__ import annotations

from mxnet import gluon

POOLINGS = ("mean", "max", "first", "last")


class FirstMax(gluon.HybridBlock):
    """The maximum along an axis; of several equal entries only the first gets the gradient."""

    def __init__(self, axis: int, **block: str) -> None:
        super().__init__(**block)
        self._axis = axis

    def hybrid_forward(self, F, values):
        # pick, not F.max: where two are equal, F.max passes the gradient to both. Nor F.Pooling,
        # whose gradient is wrong outside training mode.
        places = F.stop_gradient(F.argmax(values, axis=self._axis))
        return F.pick(values, places, axis=self._axis)


class Pooling(gluon.HybridBlock):
    """One vector per utterance, from the states of its tokens without padding.

    Shapes: states (N, T, H), lengths (N,) → (N, H).
    """

    def __init__(self, kind: str, **block: str) -> None:
        super().__init__(**block)
        self.kind = kind
        if kind == "max":
            self.first_max = FirstMax(axis=1)

    def hybrid_forward(self, F, states, lengths):
        if self.kind == "first":
            return F.squeeze(F.slice_axis(states, axis=1, begin=0, end=1), axis=1)
        by_length = {"sequence_length": lengths, "use_sequence_length": True, "axis": 1}
        if self.kind == "last":
            return F.SequenceLast(states, **by_length)
        if self.kind == "mean":
            total = F.sum(F.SequenceMask(states, **by_length), axis=1)  # (N, H)
            return F.broadcast_div(total, F.expand_dims(lengths, 1))
        lowest = F.SequenceMask(states, value=-3.0e38, **by_length)  # (N, T, H)
        return self.first_max(lowest)  # (N, H)
