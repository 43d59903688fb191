"""Where the scales α_k of Algorithm 1 come from."""

from __future__ import annotations

from typing import Callable, Iterable, Sequence, Tuple, Union

import numpy as np

from edp_mx.dp.accounting.clippings import clip_factors
from edp_mx.dp.accounting.config import ScaleRelease
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.noise import NoiseStream

FLOOR = 1e-2  # smallest scale, relative to the largest


def settle_scales(
    scales: Union[Sequence[float], np.ndarray], *, unit: str = "largest"
) -> Tuple[float, ...]:
    """Return α from a value for each layer, the smallest raised to the floor.

    "Proportional to the norm" (eDP-SGD, section 3) leaves the constant open. In units of the
    `largest`, max α = 1 and the sensitivity stays at κ C / N. In units of the `norm` itself, α is
    these values. The floor lets a layer be trained whose first gradient was zero.

    Edge cases: all zero, or any not finite → all ones.

    Source: docs/privacy.md, section 2.

    Example:
        >>> settle_scales([0.0, 3.0, 1.5, 0.001])
        (0.01, 1.0, 0.5, 0.01)
        >>> settle_scales([0.0, 3.0, 1.5, 0.001], unit="norm")
        (0.03, 3.0, 1.5, 0.03)
    """
    values = np.asarray(scales, np.float64)
    if not np.isfinite(values).all() or not values.max() > 0:
        return (1.0,) * len(values)
    if unit == "largest":
        values = values / values.max()
    return tuple(float(value) for value in np.maximum(values, FLOOR * values.max()))


def scales_by_size(flat: FlatGradients) -> np.ndarray:
    """Return √(number of coordinates) of each layer, (L,): equal room for each coordinate."""
    return np.sqrt([layer.size for layer in flat.layers])  # (L,)


def scales_by_norm(
    flat: FlatGradients, mean_over_workers: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the norm of each layer, (L,), in the gradient that is in the flat array now.

    The mean over all workers is taken, so that all get the same scales.
    """
    norms = np.sqrt(flat.squared_norms(flat.gradients()))  # (L,)
    flat.mark(is_fresh=False)  # this gradient must not train as well
    return mean_over_workers(norms)


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
