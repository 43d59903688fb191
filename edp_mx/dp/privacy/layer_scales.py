"""Where the scales α_k of Algorithm 1 come from."""

from __future__ import annotations

from typing import Callable, Sequence, Tuple, Union

import numpy as np

from edp_mx.dp.privacy.flat import FlatGradients

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
