"""α from private gradients, released with noise: `layer_scales: dp_release`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Iterable

import numpy as np

from edp_mx.dp.privacy.factors import clip_factors
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.runtime.limits import LEAST_NORM, MOST_COUNTED, MOST_NORM
from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class ScaleRelease(Settings):
    """The mean layer norms of m disjoint micro-batches, released once, before training.

    The vector of layer norms w_j = (‖∇_k‖₂)_k of each micro-batch is clipped to B, all layers
    together; what is released is (1/m) Σ_j clip_B(w_j) + y, y ~ N(0, (√2 B z_a / m)² I).

    Attributes:
        noise_multiplier: z_a, above 0.
        clip: B, the most that ‖w_j‖₂, which is the norm of the whole gradient, may be.
        micro_batches: m, over all workers. The noise on the mean is √2 z_a / m in units of B:
            with z_a = 10, fewer than 300 leave little but noise.

    Raises:
        UserError: an impossible number.

    Guarantee:
        One Gaussian event of multiplier z_a: zCDP ρ_a = 1 / (2 z_a²), μ = 1 / z_a. For an utterance
        lies in at most one of the m micro-batches, which it may turn from any gradient to any
        other, and with it v_j = clip_B(w_j) to some v_j'. Both have norm ≤ B and no negative
        coordinate, so ⟨v_j, v_j'⟩ ≥ 0 and ‖v_j − v_j'‖² = ‖v_j‖² + ‖v_j'‖² − 2⟨v_j, v_j'⟩ ≤ 2 B².
        The sum moves by √2 B at most (not 2 B, as for vectors of any sign), and does so when the
        whole gradient moves from one layer into another. That holds for replace_one and for
        zero_out, which is a special case of "any gradient to any other".

        The records are taken without chance, so that no sampling amplifies this event, under
        Poisson sampling neither. Division by the largest, and the floor, are post-processing.
        Each worker noises its own sum with 1/√N of the noise: someone who sees the message of a
        single worker sees the multiplier z_a / √N.

    Source: docs/privacy.md, section 9.

    Example:
        >>> release = ScaleRelease(noise_multiplier=10.0, clip=1.0, micro_batches=300)
        >>> round(release.noise_stddev, 4), [release.share(r, num_workers=8) for r in (0, 7)]
        (0.0471, [38, 37])
    """

    noise_multiplier: float = setting(10.0, above=0, at_most=MOST_NORM)
    clip: float = setting(1.0, at_least=LEAST_NORM, at_most=MOST_NORM)
    micro_batches: int = setting(300, at_least=1, at_most=MOST_COUNTED)

    @property
    def sensitivity(self) -> float:
        """The largest ‖change‖₂ of the mean by one utterance: √2 B / m."""
        return math.sqrt(2) * self.clip / self.micro_batches

    @property
    def noise_stddev(self) -> float:
        """The noise per coordinate of the mean: √2 B z_a / m."""
        return self.sensitivity * self.noise_multiplier

    def worker_noise_stddev(self, num_workers: int) -> float:
        """Return the noise per coordinate of one worker's sum; N of them make up `noise_stddev`."""
        return self.noise_stddev * self.micro_batches / math.sqrt(num_workers)

    def share(self, rank: int, *, num_workers: int) -> int:
        """Return how many of the m micro-batches are this worker's."""
        return len(range(rank, self.micro_batches, num_workers))

    def clipped(self, norms: np.ndarray) -> np.ndarray:
        """Return clip_B of a micro-batch's layer norms (L,); zero if one of them is not finite."""
        whole = np.sqrt(np.square(norms).sum())
        factor = float(clip_factors(whole, max_norm=self.clip))
        return factor * norms if factor > 0 else np.zeros_like(norms)


def scales_by_release(
    flat: FlatGradients,
    *,
    release: ScaleRelease,
    backward_passes: Iterable[object],
    noise: NoiseStream,
    num_workers: int,
    mean_over_workers: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return the noisy mean norm of each layer, (L,), over disjoint micro-batches.

    Args:
        backward_passes: each iteration makes one backward pass on a micro-batch of this worker that
            shares no record with any other (of any worker), and leaves its gradient in `flat`.
        noise: this worker's own stream.
        num_workers: N; all take part with their own passes and their own noise.
        mean_over_workers: averages an array over all workers.

    Guarantee: see `ScaleRelease`. Only the noisy sum leaves the worker. An iteration must be a
        function of its own records: dropout is to be seeded anew before each.
    """
    total = np.zeros(len(flat.layers))  # (L,) float64
    for _ in backward_passes:
        flat.refuse_stale()
        total += release.clipped(np.sqrt(flat.squared_norms(flat.gradients())))
        flat.mark(is_fresh=False)  # this gradient must not train as well
    noisy, stddev = np.zeros(len(total), np.float32), release.worker_noise_stddev(num_workers)
    noise.scale_and_add(noisy, factor=1.0, stddev=stddev, source=total)  # (L,)
    return mean_over_workers(noisy) * num_workers / release.micro_batches
