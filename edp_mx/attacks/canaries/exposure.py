"""Exposure of a secret in the training part, compared with other secrets of its kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

import numpy as np
from scipy.integrate import quad
from scipy.stats import skewnorm

from edp_mx.errors import UserError

LARGEST_SHAPE = 10.0
BY_CHANCE = 1 / math.log(2)  # mean exposure of a secret that was not trained on, in bits


@dataclass(frozen=True)
class Exposure:
    """Exposure of one secret, in bits.

    Attributes:
        rank: of its loss among the candidates and itself, 1 for the smallest; ties count half.
        by_rank: log2 of the number of secrets (itself included) minus log2 of its rank.
        by_fit: −log2 of the probability that a random candidate has a smaller loss, by a
            skew-normal distribution fitted to the logarithms of their losses; it goes beyond what
            ranks among few candidates can show. None where all losses are equal. A fit that is
            close to half a Gaussian (|shape| > 10), beyond whose edge everything is impossible, is
            replaced by a Gaussian.
    """

    rank: float
    candidates: int
    by_rank: float
    by_fit: Optional[float]


def exposure_of(loss: float, candidates: np.ndarray) -> Exposure:
    """Compare the loss of a secret with those (n,) of other values of the same distribution.

    Of few such values give all, which makes the rank exact.

    Source: Carlini et al. 2019, "The Secret Sharer", definitions 4 and 5 and section 4.3.
    Departs: there the log-perplexity itself is fitted. The losses of labels lie near 0 and are
    skewed; their logarithms are not, and have the same ranks.

    Example:
        >>> exposure_of(0.1, np.array([0.5, 0.2, 0.3])).by_rank  # first of four
        2.0
    """
    candidates = np.asarray(candidates, np.float64)
    if not (np.isfinite(candidates).all() and math.isfinite(loss)) or len(candidates) == 0:
        raise UserError(
            "exposure needs finite losses, and the model has diverged: lower training.learning_rate"
        )
    rank = 1 + float((candidates < loss).sum()) + float((candidates == loss).sum()) / 2
    return Exposure(
        rank=rank,
        candidates=len(candidates),
        by_rank=math.log2(len(candidates) + 1) - math.log2(rank),
        by_fit=_by_fit(loss, candidates),
    )


def _by_fit(loss: float, candidates: np.ndarray) -> Optional[float]:
    """Return −log2 P[X ≤ log loss] for the fitted skew-normal X; None where it cannot be fitted."""
    tiny = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(candidates, tiny))
    if len(logs) < 10 or logs.std() < 1e-9:
        return None
    # From 1,000 quantiles: the fit is a search, and more points change it little.
    points = np.quantile(logs, (np.arange(1000) + 0.5) / 1000) if len(logs) > 1000 else logs
    shape, place, scale = skewnorm.fit(points, loc=points.mean(), scale=points.std())
    if abs(shape) > LARGEST_SHAPE:
        shape, place, scale = 0.0, points.mean(), points.std()
    log_chance = log_below((math.log(max(loss, float(tiny))) - place) / scale, shape)
    return max(0.0, -log_chance / math.log(2))


def log_below(value: float, shape: float) -> float:
    """Return log P[X ≤ value] of a standard skew-normal X, without underflow.

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
