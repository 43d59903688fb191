"""The largest along an axis in one operator."""

from __future__ import annotations

from edp_mx.models import first_max


class FirstMax(first_max.FirstMax):
    """The same values and gradients, in one pass.

    Shapes: any → the same without the axis.
    Edge cases: what is no number is larger than all.
    """

    def check(self) -> None:
        """Nothing that it cannot do."""

    def hybrid_forward(self, F, values):
        """See the class."""
        return F.edp_first_max(values, axis=str(self._axis))[0]
