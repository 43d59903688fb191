"""DP-SGD: noise on the sum of clipped per-example gradients, on one worker."""

from __future__ import annotations

import numpy as np

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.privacy.clipping import ClippingStatistics, PerExampleClipping
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.mechanism import Mechanism
from edp_mx.privacy.noise import NoiseStream


class DPSGD(Mechanism):
    """Privatises the clipped sum of this worker's micro-batch; the trainer aggregates afterwards.

    For the micro-batch M of one worker:

      1. Clip     u ← Σ_i min(1, C / ‖(g_i,k / α_k)_k‖₂) g_i  (`clipping.PerExampleClipping`)
      2. Average  u ← u / |M|, |M| the public size, never how many were drawn
      3. Set      z_t ← z₀ · d(t)
      4. Noise    u_k ← u_k + y_k,  y_k ~ N(0, (α_k κ C z_t / (|M| √N))²)
      5. Aggregate u ← 1/N Σ_M u^M  (`trainer.PrivateTrainer`)

    The N shares of the noise add up to std α_k κ C z_t / (N |M|) on the aggregate, and one example
    moves that by κ C α_k / (N |M|): what is released has the multiplier z_t.

    Args:
        release: C, α, N, |M|; with `clips="example"`.
        noise_multiplier: z₀.
        decay: d(t), t the epoch from 0.
        flat: the network's gradients.
        noise: this worker's own stream.
        clipping: makes the sum before each step, with the C and α of `release`.

    Attributes:
        clipping: as given; it wants the losses of a micro-batch before each step.
        mask_key: of the masks of dropout, see `training.gradient.ClippedGradient`.

    Raises:
        UserError: a release of Algorithm 1.

    Guarantee: see `accounting.release.Release`; ε by `accounting.guarantee`.

    Edge cases: an empty micro-batch sends its noise; z₀ = 0 adds no noise and gives no privacy.

    Source: Abadi et al. (2016), Algorithm 1.

    Departs: z_t may fall by epoch, and layers may be scaled by α, as in eDP-SGD; no decay and
    α = 1 are the original.
    """

    clips = "example"

    def __init__(
        self,
        *,
        release: Release,
        noise_multiplier: float,
        decay: Decay,
        flat: FlatGradients,
        noise: NoiseStream,
        clipping: PerExampleClipping,
    ) -> None:
        super().__init__(
            release=release,
            noise_multiplier=noise_multiplier,
            decay=decay,
            flat=flat,
            noise=noise,
        )
        self.clipping = clipping
        self.mask_key = noise.mask_key

    def privatise(self, gradients: np.ndarray, *, epoch: int) -> None:
        """Writes the noisy mean of the clipped gradients; what the array held is lost.

        Args:
            gradients: (P,) float32; where the mean goes.
            epoch: t, from 0.

        Raises:
            UserError: nothing was clipped since the last step, so that a sum would be released
                twice, or a gradient that was not clipped.
        """
        total, mean = self.clipping.take(), 1 / self.release.micro_batch_size  # (P,)
        self.statistics = ClippingStatistics.sum([self.statistics, self.clipping.statistics])
        parts = self._noise_segments(self.noise_multiplier_at(epoch))
        self._noise.scale_and_add_parts(gradients, parts=parts, factor=mean, source=total)
