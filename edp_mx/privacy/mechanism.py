"""What makes a gradient private: the common part, and Algorithm 1 of the paper (eDP-SGD)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Iterator, Tuple

import numpy as np

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError
from edp_mx.privacy.clipping import ClippingStatistics as ClippingStatistics
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.noise import NoiseStream


class Mechanism(ABC):
    """What makes this worker's part of a step private, before the trainer aggregates it.

    Args:
        release: what a step gives away; the noise is computed from it and from nothing else, and
            the accountant is given the same object.
        noise_multiplier: z₀.
        decay: d(t), t the epoch from 0.
        flat: the network's gradients.
        noise: this worker's own stream.

    Attributes:
        statistics: how the clipping went since they were last set.
        clips: what is held to C, as `accounting.release.Release` has it.

    Raises:
        UserError: the release is that of the other mechanism.
    """

    clips: ClassVar[str]

    def __init__(
        self,
        *,
        release: Release,
        noise_multiplier: float,
        decay: Decay,
        flat: FlatGradients,
        noise: NoiseStream,
    ) -> None:
        if release.clips != self.clips:
            raise UserError(
                f"{type(self).__name__} clips each {self.clips}, but the release that it was given "
                f"each {release.clips}: its noise would be that of another mechanism"
            )
        self.release = release
        self.noise_multiplier = noise_multiplier
        self.decay = decay
        self.statistics = ClippingStatistics()
        self._flat = flat
        self._noise = noise

    @abstractmethod
    def privatise(self, gradients: np.ndarray, *, epoch: int) -> None:
        """Puts what may leave the worker into the flat array.

        Args:
            gradients: (P,) float32, the flat array.
            epoch: t, from 0.
        """

    def noise_multiplier_at(self, epoch: int) -> float:
        """z_t = z₀ d(t)."""
        return self.decay.noise_multiplier_at(self.noise_multiplier, epoch)

    def _noise_segments(self, noise_multiplier: float) -> Iterator[Tuple[slice, float]]:
        """Slices of the flat array with their noise; neighbours with the same noise are one."""
        stddevs = self.release.worker_noise_stddev(noise_multiplier)  # (L,)
        start = 0
        for k, stddev in enumerate(stddevs):
            if k + 1 == len(stddevs) or stddevs[k + 1] != stddev:
                end = self._flat.segments[k].stop
                yield slice(start, end), float(stddev)
                start = end


class EDPSGD(Mechanism):
    """Privatises the gradient of this worker's micro-batch; the trainer aggregates afterwards.

    For the micro-batch M of one worker, with Δ = ∇(1/|M| Σ L) given:

      1. Scale    Δ_k ← Δ_k / α_k
      2. Clip     Δ ← min(1, C / ‖Δ‖₂) Δ
      3. Rescale  Δ_k ← α_k Δ_k
      4. Set      z_t ← z₀ · d(t)
      5. Noise    Δ ← Δ + y/N,  y ~ N(0, (C z_t)²)
      6. Aggregate Δ ← 1/N Σ_M Δ^M  (`trainer.PrivateTrainer`)

    Steps 1–3 multiply every layer by the same factor min(1, C/‖(Δ_k/α_k)_k‖₂), so that scaling and
    rescaling need no pass of their own, and 3 and 5 are one.

    Args:
        release: C, α, N, |M| and the variant; the noise is computed from it and from nothing else,
            and the accountant is given the same object.
        noise_multiplier: z₀.
        decay: d(t), t the epoch from 0.
        flat: the network's gradients.
        noise: this worker's own stream.

    Guarantee: one utterance changes what leaves `privatise` by at most κ C α_k in layer k before
    the noise, whatever the gradient; see `accounting.guarantee` for ε.

    Edge cases: a gradient that is not finite counts as zero (its noise is still added); a zero
    gradient is not scaled; z₀ = 0 adds no noise and gives no privacy.

    Source: eDP-SGD, Algorithm 1; PRIVACY, "What Algorithm 1 releases", for the calibrated variant
    (step 5 with std α_k κ C z_t / √N in place of C z_t / N).
    """

    clips = "micro_batch"

    def privatise(self, gradients: np.ndarray, *, epoch: int) -> None:
        """Clips and noises one micro-batch's mean gradient, in place.

        Args:
            gradients: (P,) float32, the flat gradient Δ of the micro-batch's MEAN loss.
            epoch: t, from 0.
        """
        norm = self.scaled_norm(gradients)
        if not np.isfinite(norm):
            gradients.fill(0)
            norm = 0.0
            self.statistics.non_finite += 1
        factor = min(1.0, self.release.max_grad_norm / norm) if norm > 0 else 1.0
        self.statistics.steps += 1
        self.statistics.clipped += factor < 1.0
        self.statistics.norm_sum += norm

        noise_multiplier = self.noise_multiplier_at(epoch)
        self._noise.scale_and_add_parts(
            gradients, parts=self._noise_segments(noise_multiplier), factor=factor
        )

    def scaled_norm(self, gradients: np.ndarray) -> float:
        """‖(Δ_k / α_k)_k‖₂ over all layers, in float64."""
        squares = self._flat.squared_norms(gradients)  # (L,)
        return float(np.sqrt((squares / np.square(self.release.layer_scales)).sum()))
