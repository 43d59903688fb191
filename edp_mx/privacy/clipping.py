"""The sum of per-example gradients, each clipped to norm C: what DP-SGD releases with noise."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Callable, Dict, Iterable, Optional, Sequence

import mxnet as mx
import numpy as np
from mxnet import autograd
from scipy.linalg.blas import saxpy

from edp_mx.errors import UserError
from edp_mx.privacy.flat import FlatGradients

Losses = Callable[[], mx.nd.NDArray]


@dataclass
class ClippingStatistics:
    """How the clipping went, e.g. in an epoch. Not private: for the run's own log only.

    Attributes:
        steps: how often something was held against C: micro-batches, for DP-SGD examples.
        clipped: how many of them were longer than C.
        non_finite: how many counted as zero.
        norm_sum: of the norms before the clipping, in the scaled space.
    """

    steps: int = 0
    clipped: int = 0
    non_finite: int = 0
    norm_sum: float = 0.0

    def as_metrics(self) -> Dict[str, float]:
        """Averages over the steps so far."""
        steps = max(self.steps, 1)
        return {
            "clipped_fraction": self.clipped / steps,
            "scaled_norm": self.norm_sum / steps,
            "non_finite_gradients": self.non_finite,
        }

    @classmethod
    def sum(cls, parts: Sequence[ClippingStatistics]) -> ClippingStatistics:
        """Those of all workers together."""
        return cls(*(sum(values) for values in zip(*(astuple(part) for part in parts))))


class PerExampleClipping:
    """Σ_i min(1, C / ‖(g_i,k / α_k)_k‖₂) g_i over the examples of a micro-batch.

    A subclass says in `_add` how it comes by the norms and the sum of one chunk of examples. The
    sum has an array of its own, so that what lies in the network's gradients when a step is taken
    is never released, whoever put it there.

    Args:
        flat: the network's gradients; they are written over.
        max_grad_norm: C.
        layer_scales: α, one a layer.
        chunk_size: the most examples that one chunk may have.

    Attributes:
        statistics: of the last micro-batch.
        chunk_size: as given.

    Guarantee: with the weights, and the masks of dropout, one example moves the sum by C at most
    (in the scaled space), whatever its gradient and whatever the others are; see
    `accounting.release.Release` with `clips="example"`. That the losses given are those of single
    examples, in which no other one has a part, is the caller's to see to.

    Edge cases: an example whose gradient is not finite adds nothing and is counted; one of norm
    zero is not scaled.

    Source: Abadi et al. (2016), Algorithm 1; α_k as in eDP-SGD, section 3.
    """

    def __init__(
        self,
        *,
        flat: FlatGradients,
        max_grad_norm: float,
        layer_scales: Sequence[float],
        chunk_size: int,
    ) -> None:
        if len(layer_scales) != len(flat.layers):
            raise UserError(
                f"{len(layer_scales)} layer scales for {len(flat.layers)} layers; give one a layer"
            )
        self.statistics = ClippingStatistics()
        self.chunk_size = chunk_size
        self._flat = flat
        self._max_grad_norm = max_grad_norm
        self._inverse_squares = 1 / np.square(np.asarray(layer_scales, np.float64))  # (L,)
        self._total: Optional[np.ndarray] = None  # (P,), made when it is needed
        self._is_new = False

    def clip(self, losses: Iterable[Losses]) -> mx.nd.NDArray:
        """Sums the clipped gradients of one micro-batch.

        Args:
            losses: for each chunk what makes its losses (n,), one an example. It is called under
                `autograd.record()`, perhaps twice, and seeds dropout itself.

        Returns:
            The sum of all losses, (1,), of which no gradient can be taken.

        Raises:
            UserError: a chunk of more than `chunk_size`, or a parameter that a loss does not use.

        Edge cases: no chunks make an empty micro-batch, whose sum is zero, and a step like any.
        """
        self._is_new = False
        self.statistics = ClippingStatistics()
        self._sum().fill(0)
        total = mx.nd.zeros((1,), ctx=self._flat.context)
        for chunk in losses:
            total += self._add(chunk)
        self._flat.mark(is_fresh=True)
        self._is_new = True
        return total

    def take(self) -> np.ndarray:
        """The sum (P,) float32, once: valid until the next `clip`.

        Raises:
            UserError: there was no `clip` since the last time.
        """
        if not self._is_new:
            raise UserError(
                "there is no clipped gradient since the last step: one sum may be released only "
                "once, and what backward() left is never; call clip() before each step"
            )
        self._is_new = False
        return self._sum()

    def _add(self, losses: Losses) -> mx.nd.NDArray:
        """Adds the clipped gradients of one chunk to `_sum()`; returns the sum of its losses (1,).

        What `_factors` gives 0 is to be left out: 0 · ∞ is not zero.
        """
        raise NotImplementedError

    def _factors(self, squared_norms: np.ndarray) -> np.ndarray:
        """What each example's gradient is multiplied by, and the books on it.

        Args:
            squared_norms: of each example and layer, float64; not scaled by α.

        Returns:
            min(1, C / norm); 0 for an example whose norm is not finite.

        Shapes: (n, L) → (n,) float64.
        """
        squares = np.asarray(squared_norms, np.float64)  # (n, L); rounding may leave some below 0
        is_finite = np.isfinite(squares).all(axis=1)  # (n,)
        squares = np.where(is_finite[:, None], squares, 0.0).clip(min=0.0)
        norms = np.sqrt(squares @ self._inverse_squares)  # (n,)
        factors = np.where(is_finite, 1.0, 0.0)  # (n,)
        is_long = is_finite & (norms > self._max_grad_norm)
        factors[is_long] = self._max_grad_norm / norms[is_long]
        self.statistics.steps += len(norms)
        self.statistics.clipped += int(is_long.sum())
        self.statistics.non_finite += int((~is_finite).sum())
        self.statistics.norm_sum += float(norms[is_finite].sum())
        return factors

    def _sum(self) -> np.ndarray:
        """The array (P,) float32 of the clipped sum."""
        if self._total is None:
            self._total = np.zeros(self._flat.size, np.float32)
        return self._total


class LoopClipping(PerExampleClipping):
    """One backward pass an example: the paper's way, and what the others are held against.

    Args:
        flat, max_grad_norm, layer_scales: see `PerExampleClipping`.

    Source: eDP-SGD, Table 2, "DP-SGD".
    """

    def __init__(
        self, *, flat: FlatGradients, max_grad_norm: float, layer_scales: Sequence[float]
    ) -> None:
        super().__init__(
            flat=flat, max_grad_norm=max_grad_norm, layer_scales=layer_scales, chunk_size=1
        )

    def _add(self, losses: Losses) -> mx.nd.NDArray:
        """See `PerExampleClipping._add`; a chunk is one example."""
        self._flat.mark(is_fresh=False)
        with autograd.record():
            loss = losses()  # (1,)
        if loss.shape != (1,):
            raise UserError(f"a chunk has losses of shape {loss.shape}; loop takes one example")
        loss.backward()
        self._flat.refuse_stale()  # else the example before would be in it a second time
        gradient = self._flat.gradients()  # (P,)
        (factor,) = self._factors(self._flat.squared_norms(gradient)[None])
        if factor > 0:
            saxpy(gradient, self._sum(), a=factor)  # in place
        return loss.detach()
