"""Dominating pairs of distributions of Poisson sampling, cut into cells of outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import List, Tuple

import numpy as np
from scipy.special import ndtr

DIRECTIONS = {
    "zero_out": ("remove", "add"),
    "replace_one": ("replace",),
    "replace_in_mean": ("swap",),
}
LEFT, RIGHT = 12.0, 20.0  # how far the cells reach, in standard deviations of the noise
OUTSIDE = 4 * float(ndtr(-LEFT))  # at most this much of P lies in no cell: 7e-33
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)  # on [−1, 1]


@dataclass(frozen=True)
class Cells:
    """Disjoint intervals of outcomes of one step, with their masses under P and Q.

    Attributes:
        low, high: the privacy losses log(p/q) at the ends of each.
        log_p, log_q: log P(cell) and log Q(cell).
        up: the part of P(cell) that goes to `high`, the rest to `low`, when the cell is replaced
            by its two ends with P and Q kept in sum ("connect the dots").

    Shapes: all (M,).
    """

    low: np.ndarray
    high: np.ndarray
    log_p: np.ndarray
    log_q: np.ndarray
    up: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """log P(cell)/Q(cell), which is between `low` and `high`."""
        return np.clip(self.log_p - self.log_q, self.low, self.high)  # (M,)

    def without_ends(self, mass: float) -> Cells:
        """Return the cells without the ones of least and of most loss, each up to this mass."""
        order = np.argsort(self.low, kind="stable")  # (M,)
        sorted_mass = np.exp(self.log_p[order])  # (M,)
        is_kept = (np.cumsum(sorted_mass) > mass) & (np.cumsum(sorted_mass[::-1])[::-1] > mass)
        kept = np.sort(order[is_kept])
        return Cells(*(getattr(self, field.name)[kept] for field in fields(self)))


def cells_of(
    direction: str, *, sample_rate: float, noise_multiplier: float, per_stddev: int
) -> Cells:
    """Cut one step into cells.

    With φ the density of N(0, z²) and m = (1 − q) φ(x) + q φ(x − 1), P and Q are: remove m and φ;
    add φ and m; replace m(x) and m(−x). Swap has the divergences of remove for α ≥ 1 and of add
    for α < 1: see `_swap`. The multiplier z is relative to what one record can add.

    Source: zero-out: Zhu, Dong and Wang (2022), Theorem 11. Replace: Lebeda, Regehr, Kamath and
    Steinke (2024), "Avoiding Pitfalls for Privacy Accounting of Subsampled Mechanisms under
    Composition"; Schuchardt et al. (2024).
    """
    q, z = sample_rate, noise_multiplier
    if direction == "swap":
        return _swap(q, z, per_stddev)
    return _cut(direction, q, z, _edges(direction, q, z, per_stddev))


def _cut(direction: str, q: float, z: float, edges: List[np.ndarray]) -> Cells:
    """Cells between the edges of each span; masses by Gauss–Legendre, without cancellation."""
    left = np.concatenate([e[:-1] for e in edges])  # (M,)
    right = np.concatenate([e[1:] for e in edges])  # (M,)
    half = (right - left) / 2
    low, high = _loss(direction, q, z, left), _loss(direction, q, z, right)
    x = left[:, None] + half[:, None] * (1 + _NODES)  # (M, 3)
    log_density = _log_p(direction, q, z, x)  # (M, 3)
    largest = log_density.max(axis=1)  # (M,)
    density = np.exp(log_density - largest[:, None]) * _WEIGHTS  # (M, 3)
    above = _loss(direction, q, z, x) - low[:, None]  # (M, 3), 0 or more
    mass = density.sum(axis=1)  # (M,)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = -(density * np.expm1(-above)).sum(axis=1) / mass / -np.expm1(low - high)
    least = above.min(axis=1)  # (M,)
    log_q = np.log((density * np.exp(least[:, None] - above)).sum(axis=1)) - low - least
    log_scale = largest + np.log(half)
    return Cells(
        low=low,
        high=high,
        log_p=log_scale + np.log(mass),
        log_q=log_scale + log_q,
        up=np.where(high > low, np.clip(up, 0.0, 1.0), 1.0),
    )


def _edges(direction: str, q: float, z: float, per_stddev: int) -> List[np.ndarray]:
    """Equidistant edges around the one or two centres of P; outcomes far from both are left out."""
    spans: List[Tuple[float, float]]
    if direction == "add":
        spans = [(-LEFT * z, RIGHT * z)]
    elif q == 1:
        spans = [(1 - LEFT * z, 1 + RIGHT * z)]
    elif 2 * LEFT * z < 1:
        spans = [(-LEFT * z, LEFT * z), (1 - LEFT * z, 1 + RIGHT * z)]
    else:
        spans = [(-LEFT * z, 1 + RIGHT * z)]
    return [np.linspace(a, b, math.ceil((b - a) / z * per_stddev) + 1) for a, b in spans]


def _swap(q: float, z: float, per_stddev: int) -> Cells:
    """Cells for a record exchanged where all that it can do lies in one ball of the sensitivity.

    With A without the record, B and B' with either, all pairwise within the sensitivity, advanced
    joint convexity gives H_α((1−q)A + qB, (1−q)A + qB') ≤ q H_α'(N(1), N(0)) for α ≥ 1, with
    α' = 1 + (α − 1)/q, which is what remove has; and by symmetry what add has for α < 1. Such
    divergences belong to: remove where its loss is positive, its mirror image, the rest at 0.

    Source: Balle, Barthe and Gaboardi (2018), Theorems 2 and 10; Dong, Roth and Su (2022),
    Theorem 9 (the symmetric trade-off function, which must be composed as such).
    """
    start, end = max(0.5, 1 - LEFT * z), 1 + RIGHT * z  # at 1/2 the loss of remove is 0
    edges = np.linspace(start, end, math.ceil((end - start) / z * per_stddev) + 1)
    there = _cut("remove", q, z, [edges])
    q_up = there.up * np.exp(there.log_p - there.log_q - there.high)
    used = float(np.logaddexp.reduce([*there.log_p, *there.log_q]))
    rest = [math.log(-math.expm1(used))] if used < 0 else []
    still = [0.0] * len(rest)
    return Cells(
        low=np.concatenate([-there.high, still, there.low]),
        high=np.concatenate([-there.low, still, there.high]),
        log_p=np.concatenate([there.log_q, rest, there.log_p]),
        log_q=np.concatenate([there.log_p, rest, there.log_q]),
        up=np.concatenate([1 - np.clip(q_up, 0.0, 1.0), still, there.up]),
    )


def _log_p(direction: str, q: float, z: float, x: np.ndarray) -> np.ndarray:
    """log p(x)."""
    absent = -0.5 * (x / z) ** 2 - math.log(z * math.sqrt(2 * math.pi))
    if direction == "add":
        return absent
    present = -0.5 * ((x - 1) / z) ** 2 - math.log(z * math.sqrt(2 * math.pi))
    if q == 1:
        return present
    return np.logaddexp(math.log1p(-q) + absent, math.log(q) + present)


def _loss(direction: str, q: float, z: float, x: np.ndarray) -> np.ndarray:
    """log p(x)/q(x); rises with x."""
    if direction == "remove":
        return _log_ratio(q, z, x)
    if direction == "add":
        return -_log_ratio(q, z, -x)
    return _log_ratio(q, z, x) - _log_ratio(q, z, -x)


def _log_ratio(q: float, z: float, x: np.ndarray) -> np.ndarray:
    """log(1 − q + q e^t), t = (x − 1/2)/z², exact for small ones and without overflow."""
    t = (x - 0.5) / z / z
    if q == 1:
        return t
    near = np.log1p(q * np.expm1(np.minimum(t, 30.0)))
    far = math.log(q) + t + np.log1p((1 - q) / q * np.exp(-np.maximum(t, 30.0)))
    return np.where(t < 30, near, far)
