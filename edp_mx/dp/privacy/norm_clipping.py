"""Clipping by norms: Algorithm 1's for micro-batches, DP-SGD's for utterances and users."""

from __future__ import annotations

from abc import abstractmethod
from typing import Tuple

import mxnet as mx
import numpy as np

from edp_mx.dp.accounting.clippings import CLIP_RULES
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.clipping import Clipping, Losses
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.errors import UserError


class NormClipping(Clipping):
    """Σ_j min(1, C / ‖(g_j,k / α_k)_k‖₂) g_j over units j.

    Args:
        release: of a step, with the C, α and rule that the noise goes by as well.

    Guarantee: one unit moves the sum by at most C in the scaled space, whatever the gradients are.
        Let u_j = f(‖A⁻¹ g_j‖₂) g_j with A = diag(α), f(x) = min(1, C / x) or, by the automatic
        rule, C / (x + γ), and u_j = 0 where g_j is not finite. For given weights and dropout masks,
        the sum over a set of units and the sum over the same set without unit j differ by u_j, and
        ‖A⁻¹ u_j‖₂ ≤ C. Each loss must be that of a single unit and depend on no other; the caller
        is responsible for that.

    Edge cases: norms are right to 1e-5. Chunks are summed in float64, also those of one unit;
    inside a chunk ghost clipping multiplies in float32 (docs/privacy.md, section 10). A unit whose
    gradient is not finite adds nothing and is counted; one of norm zero is not scaled.

    Source: Abadi et al. (2016), Algorithm 1; α_k as in eDP-SGD, section 3.
    """

    def __init__(self, *, flat: FlatGradients, release: Release, chunk_size: int) -> None:
        super().__init__(flat=flat, chunk_size=chunk_size)
        scales = release.layer_scales
        if scales is None:
            raise UserError("the layer scales are not known yet: with_layer_scales first")
        if len(scales) != len(flat.layers):
            raise UserError(
                f"{len(scales)} layer scales for {len(flat.layers)} layers; give one per layer"
            )
        self.release = release
        self._factors_of = CLIP_RULES[release.clip_rule]
        self._inverse_squares = 1 / np.square(scales)  # (L,)

    def in_full(self) -> NormClipping:
        """Return one that rounds to float32 alone, and can be compared with the loop."""
        return self

    @abstractmethod
    def squared_norms(self, losses: Losses) -> np.ndarray:
        """Return the squared norms per unit and layer, (U, L) float64, not scaled by α."""

    def _factors(self, squared_norms: np.ndarray) -> np.ndarray:
        """Return the units' factors, and update the statistics. Shapes: (U, L) → (U,)."""
        squares = np.asarray(squared_norms, np.float64)  # (U, L); rounding may leave some below 0
        is_finite = np.isfinite(squares).all(axis=1)  # (U,)
        squares = np.where(is_finite[:, None], squares, 0.0).clip(min=0.0)
        norms = np.where(is_finite, np.sqrt(squares @ self._inverse_squares), np.inf)  # (U,)
        self.statistics.add(norms, max_norm=self.release.max_grad_norm)
        return self._factors_of(norms, max_norm=self.release.max_grad_norm)


class LoopClipping(NormClipping):
    """One backward pass per unit: Algorithm 1's clipping, and the reference for ghost clipping.

    Source: eDP-SGD, Algorithm 1 for micro-batches; Table 2, "DP-SGD", for utterances.
    """

    def __init__(self, *, flat: FlatGradients, release: Release) -> None:
        super().__init__(flat=flat, release=release, chunk_size=1)

    def squared_norms(self, losses: Losses) -> np.ndarray:
        _, squares, _ = self._gradient_of(losses)
        self.flat.give_to(None)
        return squares

    def _add(self, losses: Losses) -> Tuple[np.ndarray, float, mx.nd.NDArray]:
        gradient, squares, made = self._gradient_of(losses)  # (P,), (1, L), (1,)
        (factor,) = self._factors(squares)
        if factor == 0:
            gradient.fill(0)
        return gradient, float(factor), made

    def _gradient_of(self, losses: Losses) -> Tuple[np.ndarray, np.ndarray, mx.nd.NDArray]:
        """Gradient (P,), squared norms (1, L) and loss (1,) of a unit."""
        made = self._backward(losses)  # (1,)
        if made.shape != (1,):
            raise UserError(f"a chunk has losses of shape {made.shape}; loop takes one unit")
        gradient = self.flat.gradients()  # (P,)
        return gradient, self.flat.squared_norms(gradient)[None], made
