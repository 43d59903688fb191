"""Exposure of a secret that was trained on: how far it stands out among all that it could be."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional

import numpy as np
from scipy.integrate import quad
from scipy.stats import skewnorm

from edp_mx.errors import UserError

LARGEST_SHAPE = 10.0
BY_CHANCE = 1 / math.log(2)  # mean exposure of a secret that was not trained on, in bits


@dataclass(frozen=True)
class Exposure:
    """One secret's exposure, in bits.

    Attributes:
        rank: of its loss among the candidates and itself, 1 for the smallest; ties count half.
        candidates: how many others it was compared with.
        by_rank: log2 of their number (with it) minus log2 of its rank.
        by_fit: −log2 of the chance that a random candidate has so small a loss, by a skew-normal
            distribution fitted to the logarithms of their losses; it goes beyond what ranks among
            a few can show. None where there is nothing to fit (all losses are equal). A fit that
            ends in half a Gaussian (|shape| > 10), beyond whose edge all is impossible, gives way
            to a whole one.
    """

    rank: float
    candidates: int
    by_rank: float
    by_fit: Optional[float]

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON."""
        return asdict(self)


def exposure_of(loss: float, candidates: np.ndarray) -> Exposure:
    """Compares a secret's loss with those of other values in its place.

    Args:
        loss: of the secret that was trained on: minus the log-likelihood of its labels.
        candidates: of values drawn alike, without the secret; all of them, if they are few, which
            makes the rank exact.

    Raises:
        UserError: a loss is not finite, or there are no candidates.

    Shapes: candidates (n,).

    Source: Carlini et al. 2019, "The Secret Sharer", definitions 4 and 5 and section 4.3.
    Departs: there the log-perplexity itself is fitted. The losses of labels lie near 0 and are
    skewed, their logarithms are not; ranks are the same.

    Example:
        >>> exposure_of(0.1, np.array([0.5, 0.2, 0.3])).by_rank  # first of four
        2.0
    """
    candidates = np.asarray(candidates, np.float64)
    if not (np.isfinite(candidates).all() and math.isfinite(loss)) or len(candidates) == 0:
        raise UserError("the exposure needs finite losses: the model has diverged")
    rank = 1 + float((candidates < loss).sum()) + float((candidates == loss).sum()) / 2
    return Exposure(
        rank=rank,
        candidates=len(candidates),
        by_rank=math.log2(len(candidates) + 1) - math.log2(rank),
        by_fit=_by_fit(loss, candidates),
    )


def _by_fit(loss: float, candidates: np.ndarray) -> Optional[float]:
    """−log2 P[X ≤ log loss] for a skew-normal X."""
    tiny = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(candidates, tiny))
    if len(logs) < 10 or logs.std() < 1e-9:
        return None
    # From the quantiles of 1,000: the fit is a search, and more points change it little.
    points = np.quantile(logs, (np.arange(1000) + 0.5) / 1000) if len(logs) > 1000 else logs
    shape, place, scale = skewnorm.fit(points, loc=points.mean(), scale=points.std())
    if abs(shape) > LARGEST_SHAPE:
        shape, place, scale = 0.0, points.mean(), points.std()
    log_chance = log_below((math.log(max(loss, float(tiny))) - place) / scale, shape)
    return max(0.0, -log_chance / math.log(2))


def log_below(value: float, shape: float) -> float:
    """log P[X ≤ value] of a standard skew-normal X, also where the chance itself underflows.

    Example:
        >>> round(log_below(0.0, 0.0), 6)  # one half
        -0.693147
    """
    if value > -5:
        chance = float(skewnorm.cdf(value, shape))
        if chance > 1e-8:
            return math.log(chance)
    peak = float(skewnorm.logpdf(value, shape))
    rate = max(1.0, -value * (1 + max(shape, 0.0) ** 2))  # how fast the density falls from here

    def relative(steps: float) -> float:
        return math.exp(float(skewnorm.logpdf(value - steps / rate, shape)) - peak)

    return peak + math.log(quad(relative, 0, math.inf)[0] / rate)
