"""Algorithm 1 of the paper (eDP-SGD), on one worker."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Dict, Iterator, Sequence, Tuple

import numpy as np

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.noise import NoiseStream


@dataclass
class ClippingStatistics:
    """How the clipping went, e.g. in an epoch. Not private: for the run's own log only."""

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


class EDPSGD:
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

    def __init__(
        self,
        *,
        release: Release,
        noise_multiplier: float,
        decay: Decay,
        flat: FlatGradients,
        noise: NoiseStream,
    ) -> None:
        self.release = release
        self.noise_multiplier = noise_multiplier
        self.decay = decay
        self.statistics = ClippingStatistics()
        self._flat = flat
        self._noise = noise

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
        for segment, stddev in self._noise_segments(noise_multiplier):
            self._noise.scale_and_add(gradients[segment], factor=factor, stddev=stddev)

    def noise_multiplier_at(self, epoch: int) -> float:
        """z_t = z₀ d(t)."""
        return self.decay.noise_multiplier_at(self.noise_multiplier, epoch)

    def scaled_norm(self, gradients: np.ndarray) -> float:
        """‖(Δ_k / α_k)_k‖₂ over all layers, in float64."""
        squares = self._flat.squared_norms(gradients)  # (L,)
        return float(np.sqrt((squares / np.square(self.release.layer_scales)).sum()))

    def _noise_segments(self, noise_multiplier: float) -> Iterator[Tuple[slice, float]]:
        """Slices of the flat array with their noise; neighbours with the same noise are one."""
        stddevs = self.release.worker_noise_stddev(noise_multiplier)  # (L,)
        start = 0
        for k, stddev in enumerate(stddevs):
            if k + 1 == len(stddevs) or stddevs[k + 1] != stddev:
                end = self._flat.segments[k].stop
                yield slice(start, end), float(stddev)
                start = end
