"""The largest along an axis."""

from __future__ import annotations

from mxnet import gluon


class FirstMax(gluon.HybridBlock):
    """The largest along an axis; of several that are equal the first one has the gradient.

    Args:
        axis: from 0.

    Shapes: any → the same without the axis.
    """

    def __init__(self, axis: int, **block: str) -> None:
        super().__init__(**block)
        self._axis = axis

    def hybrid_forward(self, F, values):
        """See the class."""
        # pick, not F.max: where two are equal, F.max passes the gradient to both. Nor F.Pooling,
        # whose gradient is wrong outside training mode.
        places = F.stop_gradient(F.argmax(values, axis=self._axis))
        return F.pick(values, places, axis=self._axis)
