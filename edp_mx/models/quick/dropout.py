"""Dropout whose masks are a hash of the place: made twice rather than kept, in one pass."""

from __future__ import annotations

from typing import Any

from mxnet.gluon import nn

DRAWS = 64  # numbers that make a mask; `native/mask.h` has it too


def draws_of(F: Any) -> Any:
    """What a mask is made of, (DRAWS,): 0 or 2 at random, all 1 outside training.

    That is MXNet's own dropout of ones. Its generator is the one that seeds all of MXNet's dropout,
    and it knows whether it trains, which MXNet does not tell operators of a library.
    """
    return F.stop_gradient(F.Dropout(F.ones((DRAWS,)), p=0.5))


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
        return F.edp_dropout(x, draws_of(F), rate=repr(self._rate))
