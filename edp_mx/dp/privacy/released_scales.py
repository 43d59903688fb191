"""α from private gradients, released with noise: `layer_scales: dp_release`."""

from __future__ import annotations

from typing import Callable, Iterable

import numpy as np

from edp_mx.dp.accounting.clippings import clip_factors
from edp_mx.dp.accounting.config import ScaleRelease
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.noise import NoiseStream


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
        num_workers: N; all take part with their own passes and their own noise.

    Guarantee: see `ScaleRelease`. Only the noisy sum leaves the worker. An iteration must be a
        function of its own records: dropout is to be seeded anew before each.
    """
    total = np.zeros(len(flat.layers))  # (L,) float64
    for _ in backward_passes:
        flat.refuse_stale()
        total += clipped(np.sqrt(flat.squared_norms(flat.gradients())), clip=release.clip)
        flat.mark(is_fresh=False)  # this gradient must not train as well
    noisy, stddev = np.zeros(len(total), np.float32), release.worker_noise_stddev(num_workers)
    noise.scale_and_add(noisy, factor=1.0, stddev=stddev, source=total)  # (L,)
    return mean_over_workers(noisy) * num_workers / release.micro_batches


def clipped(norms: np.ndarray, *, clip: float) -> np.ndarray:
    """Return clip_B of a micro-batch's layer norms (L,); zero if one of them is not finite."""
    whole = np.sqrt(np.square(norms).sum())
    factor = float(clip_factors(whole, max_norm=clip))
    return factor * norms if factor > 0 else np.zeros_like(norms)
