"""Where the scales α_k of Algorithm 1 come from."""

from __future__ import annotations

from typing import Callable, Sequence, Tuple, Union

import numpy as np

from edp_mx.privacy.flat import FlatGradients

FLOOR = 1e-2  # smallest scale, relative to the largest


def normalise_scales(scales: Union[Sequence[float], np.ndarray]) -> Tuple[float, ...]:
    """Divide the scales by the largest and raise the smallest to the floor.

    "Proportional" (eDP-SGD, section 3) leaves the constant open; max α = 1 keeps the sensitivity
    at κ C / N, and the floor lets a layer be trained whose first gradient was zero.

    Edge cases: all zero, or any not finite → all ones.

    Example:
        >>> normalise_scales([0.0, 3.0, 1.5, 0.001])
        (0.01, 1.0, 0.5, 0.01)
    """
    values = np.asarray(scales, np.float64)
    if not np.isfinite(values).all() or not values.max() > 0:
        return (1.0,) * len(values)
    return tuple(float(value) for value in np.maximum(values / values.max(), FLOOR))


def scales_by_size(flat: FlatGradients) -> Tuple[float, ...]:
    """Return α_k ∝ √(number of coordinates of layer k): equal room for each coordinate."""
    return normalise_scales([layer.size**0.5 for layer in flat.layers])


def scales_by_norm(
    flat: FlatGradients, mean_over_workers: Callable[[np.ndarray], np.ndarray]
) -> Tuple[float, ...]:
    """Return α_k ∝ the norm of layer k in the gradient that is in the flat array now.

    The mean over all workers is taken first, so that all get the same scales.
    """
    norms = np.sqrt(flat.squared_norms(flat.gradients()))  # (L,)
    flat.mark(is_fresh=False)  # this gradient must not train as well
    return normalise_scales(mean_over_workers(norms))
