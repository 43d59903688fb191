"""Dropout whose masks are a hash of the place: made twice rather than kept, in one pass."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.models.quick.operators import Properties, compiled, fill, memory

OPERATOR = "Dropout"
USED = "used"  # the output that says which mask was used, for the backward pass


class Mask(NamedTuple):
    """Which places are lost: those whose hash under two keys is below `lost`.

    `scale` is what the others are multiplied by.
    """

    key: int
    other: int
    lost: int
    scale: float

    @classmethod
    def drawn(cls, draws: np.ndarray, rate: float, *, is_train: bool) -> Mask:
        """The mask of two numbers that MXNet drew; outside training nothing is lost.

        Shapes: draws (2,) float32.
        """
        key, other = draws.view(np.uint32).tolist()
        if not is_train:
            return cls(key, other, 0, 1.0)
        return cls(key, other, int(rate * 2**32), 1.0 / (1.0 - rate))

    def save(self, used: np.ndarray) -> None:
        """Writes it down. Shapes: used (4,) float32, of which the bits are taken."""
        used[:3].view(np.uint32)[:] = self[:3]
        used[3] = self.scale

    @classmethod
    def load(cls, used: np.ndarray) -> Mask:
        """What `save` wrote."""
        key, other, lost = used[:3].view(np.uint32).tolist()
        return cls(key, other, lost, float(used[3]))


def draws_of(F: Any) -> Any:
    """Two random numbers, (2,), of the generator that seeds all of MXNet's dropout."""
    return F.random.uniform(shape=(2,))


class Dropout(nn.Dropout):
    """Gluon's Dropout: the same rate and scale, other masks for the same seed.

    Shapes: any → the same.
    """

    def check(self) -> None:
        """Raises: ValueError: its mask is to be shared along an axis."""
        if self._axes:
            raise ValueError(f"{self.name} shares its mask along {self._axes}")

    def hybrid_forward(self, F, x):
        """See the class."""
        if self._rate == 0:
            return F.identity(x)
        return F.Custom(x, draws_of(F), op_type=OPERATOR, rate=repr(self._rate))[0]


class _Operator(mx.operator.CustomOp):
    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def forward(self, is_train, req, in_data, out_data, aux) -> None:  # noqa: ARG002
        x, draws = (memory(array) for array in in_data)
        mask = Mask.drawn(draws, self._rate, is_train=is_train)
        fill(out_data[1], "write", mask.save)
        fill(out_data[0], req[0], lambda out: compiled().dropout(x, out=out, mask=mask))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:  # noqa: ARG002
        heads, mask = memory(out_grad[0]), Mask.load(memory(out_data[1]))
        fill(in_grad[0], req[0], lambda out: compiled().dropout(heads, out=out, mask=mask))
        fill(in_grad[1], req[1], lambda out: out.fill(0))


@mx.operator.register(OPERATOR)
class _Properties(Properties):
    arguments = ("data", "draws")
    outputs = ("output", USED)

    def __init__(self, rate: str) -> None:
        super().__init__()
        self._rate = float(rate)

    def infer_shape(self, in_shape: List[list]) -> Tuple[List[list], List[list], List[list]]:
        return [in_shape[0], [2]], [in_shape[0], [4]], []

    def create_operator(self, ctx, shapes, dtypes) -> _Operator:  # noqa: ARG002
        return _Operator(self._rate)
