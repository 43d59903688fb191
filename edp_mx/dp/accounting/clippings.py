"""How the gradients of units are clipped: the rules by which no unit's is longer than C, the ways.

To add a way: its class, its name in `CLIPPINGS`, and its name in `privacy.build_clipping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

import numpy as np

from edp_mx.dp.accounting.coverage import MASKS, ROUNDED_PRODUCTS, SUMS
from edp_mx.runtime.precision import FULL, LOW

SMALLEST_FACTOR = 2.0**-100  # far above float32's smallest normal number, even once divided
STABILITY = 0.01  # γ of automatic clipping
TAKE_LOOP = "set privacy.clipping: loop"  # where ghost clipping cannot be had


def clip_factors(norms: np.ndarray, *, max_norm: float) -> np.ndarray:
    """Return min(1, C / norm) for each norm; 0 for one that is not finite.

    Gradients with factor 0 must be left out, since 0 · ∞ is not zero. A factor too small for the
    precision of float32 is 0 too: rounded, it could be twice what it should be.

    Example:
        >>> clip_factors(np.array([0.0, 1.0, 4.0, np.inf, np.nan]), max_norm=2.0)
        array([1. , 1. , 0.5, 0. , 0. ])
    """
    norms = np.asarray(norms, np.float64)
    factors = np.where(np.isfinite(norms), 1.0, 0.0)
    is_long = np.isfinite(norms) & (norms > max_norm)
    np.divide(max_norm, norms, out=factors, where=is_long)
    return np.where(factors < SMALLEST_FACTOR, 0.0, factors)


def automatic_factors(norms: np.ndarray, *, max_norm: float) -> np.ndarray:
    """Return C / (norm + γ) for each norm, γ = `STABILITY`; 0 for one that is not finite.

    All gradients get nearly the norm C, so that C only scales the learning rate. No gradient gets
    more than C, as with `clip_factors`.

    Source: Bu et al. 2022, "Automatic clipping", equation (AUTO-S).

    Example:
        >>> automatic_factors(np.array([0.99, 3.99, np.inf]), max_norm=2.0)
        array([2. , 0.5, 0. ])
    """
    norms = np.asarray(norms, np.float64)
    with np.errstate(invalid="ignore"):
        factors = np.where(np.isfinite(norms), max_norm / (norms + STABILITY), 0.0)
    return np.where(factors < SMALLEST_FACTOR, 0.0, factors)


CLIP_RULES = {"abadi": clip_factors, "automatic": automatic_factors}


@dataclass(frozen=True)
class ClippingWay:
    """One way of clipping; ε is the same for all.

    `precision` is that of the products of dense layers.
    """

    takes_many: bool = False
    precision: str = FULL
    not_covered: Tuple[str, ...] = ()


CLIPPINGS: Dict[str, ClippingWay] = {
    "loop": ClippingWay(),
    "ghost": ClippingWay(takes_many=True, not_covered=(MASKS, SUMS)),
    "ghost_bfloat16": ClippingWay(
        takes_many=True, precision=LOW, not_covered=(MASKS, SUMS, ROUNDED_PRODUCTS)
    ),
}
