"""The sum of the gradients of units (micro-batches, utterances, users), clipped or not."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.running_sum import RunningSum

Losses = Callable[[], mx.nd.NDArray]
"""Computes the losses (U,) of one chunk, one per unit, under `autograd.record()`.

A unit is what is clipped as one: a micro-batch (its loss is the mean over |M|, the public size), an
utterance, or a user (its loss is the sum over their utterances). Dropout is seeded inside.
"""


class ClippedSum:
    """Sum of the clipped gradients of some units, which may be taken once; the flat array's owner.

    Shapes: values (P,), still to be multiplied by the factor; loss (1,), of all units.
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        values: np.ndarray,
        factor: float,
        loss: mx.nd.NDArray,
        num_units: int,
    ) -> None:
        self.loss, self.num_units = loss, num_units
        self._flat, self._values, self._factor = flat, values, factor
        flat.give_to(self)

    def take(self) -> Tuple[np.ndarray, float]:
        """Return the values and the factor that is due.

        Raises:
            UserError: they were taken before, units were clipped since, or a backward pass has
                written a raw gradient.
        """
        self._flat.take_from(self)
        return self._values, self._factor


@dataclass
class ClippingStatistics:
    """Statistics of clipping, e.g. in an epoch. Not private: for the run's own log only.

    Attributes:
        clipped, non_finite: how many units had a norm above C, and how many counted as zero.
        norm_sum: sum of the norms before clipping, in the scaled space.
    """

    units: int = 0
    clipped: int = 0
    non_finite: int = 0
    norm_sum: float = 0.0

    def add(self, norms: np.ndarray, *, max_norm: float) -> None:
        """Add some more units. Shapes: norms (U,), in the scaled space."""
        is_finite = np.isfinite(norms)  # (U,)
        self.units += len(norms)
        self.clipped += int((norms[is_finite] > max_norm).sum())
        self.non_finite += int((~is_finite).sum())
        self.norm_sum += float(norms[is_finite].sum())

    def as_metrics(self) -> Dict[str, float]:
        """Return averages over the units so far."""
        units = max(self.units, 1)
        return {
            "clipped_fraction": self.clipped / units,
            "scaled_norm": self.norm_sum / units,
            "non_finite_gradients": self.non_finite,
        }

    @classmethod
    def of(cls, numbers: Sequence[float]) -> ClippingStatistics:
        """Return the statistics with these numbers, in the order of the attributes."""
        units, clipped, non_finite, norm_sum = numbers
        return cls(int(units), int(clipped), int(non_finite), float(norm_sum))


class Clipping(ABC):
    """A way of computing the sum of the clipped gradients of units.

    A subclass computes the sum over one chunk, of at most `chunk_size` rows of a batch or of one
    unit; this class adds up the chunks, in float64. The network's gradients are overwritten.
    """

    def __init__(self, *, flat: FlatGradients, chunk_size: int) -> None:
        self.chunk_size = chunk_size
        self.statistics = ClippingStatistics()
        self.flat = flat
        self._sum = RunningSum(flat.size)

    @abstractmethod
    def _add(self, losses: Losses) -> Tuple[np.ndarray, float, mx.nd.NDArray]:
        """Return the sum over one chunk (P,) float32, the factor due on it, and the losses (U,).

        The array may be the flat one: it is read before the next chunk overwrites it.
        """

    def clip(self, chunks: Iterable[Losses]) -> ClippedSum:
        """Sum the clipped gradients of the units of one step; without chunks, the sum is zero."""
        self.flat.give_to(None)  # an earlier sum can no longer be taken
        self._sum.clear()
        total, num_units = mx.nd.zeros((1,), ctx=self.flat.context), 0
        for losses in chunks:
            self._sum.settle()  # before its array is written over
            values, factor, made = self._add(losses)
            self._sum.put(values, factor=factor)
            total += made.detach().sum()
            num_units += len(made)
        if num_units == 0:
            nothing = self.flat.gradients()  # (P,)
            nothing.fill(0)
            self._sum.put(nothing, factor=1.0)
        values, factor = self._sum.result()
        return ClippedSum(
            flat=self.flat, values=values, factor=factor, loss=total, num_units=num_units
        )

    def take_statistics(self) -> ClippingStatistics:
        taken, self.statistics = self.statistics, ClippingStatistics()
        return taken

    def _backward(self, losses: Losses) -> mx.nd.NDArray:
        """Run one backward pass of the sum of all losses (U,), and return them.

        Raises:
            UserError: the losses do not use a parameter, whose array still holds the gradient of
                other units.
        """
        self.flat.mark(is_fresh=False)
        with autograd.record():
            made = losses()  # (U,)
        made.backward()
        self.flat.refuse_stale()
        return made


class Unclipped(Clipping):
    """No clipping and no privacy: the gradient of the sum of all losses, by one backward pass."""

    def __init__(self, *, flat: FlatGradients) -> None:
        super().__init__(flat=flat, chunk_size=sys.maxsize)

    def _add(self, losses: Losses) -> Tuple[np.ndarray, float, mx.nd.NDArray]:
        made = self._backward(losses)  # (U,)
        return self.flat.gradients(), 1.0, made
