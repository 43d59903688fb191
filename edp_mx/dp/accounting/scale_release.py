"""The release of α from private data, and what it costs: the settings below `scale_release`."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
