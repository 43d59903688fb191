"""Rényi divergences of Poisson-sampled Gaussians, and the ε that they give."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Sequence, Tuple

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

from edp_mx.dp.accounting.choices import check_delta, check_multiplier, check_rate
from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.lognumber import exp_of, log_of
from edp_mx.dp.accounting.zcdp import log_epsilon_renyi, log_rho_of
from edp_mx.errors import UserError

ORDERS: Tuple[float, ...] = tuple(
    sorted(
        {
            *(1 + 10.0 ** (k / 5) for k in range(-30, 0)),
            *(1 + k / 100 for k in range(1, 100)),
            *(1 + 1.01**k for k in range(840)),  # to 4222
            *(1 + 1.03**k for k in range(283, 370)),  # to 54442
            *map(float, range(2, 65)),
            *(0.25 * k for k in range(8, 44)),
            *(80.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0),
        }
    )
)
SMALLEST_MULTIPLIER = 1e-100  # below it 1/z² overflows; counted as no noise
LARGEST_MULTIPLIER = 1e100  # above it sampling is ignored; next to nothing is spent
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)  # on [−1, 1]
_ROUNDING = 4e-15  # of a log moment that is taken by quadrature: added, to stay above
_KNEE = 40.0  # in units of the knee's width z²: beyond, one of the two Gaussians is all there is


def rdp_sampled_gaussian(
    *, sample_rate: float, noise_multiplier: float, orders: Sequence[float]
) -> np.ndarray:
    """Return the Rényi divergence of one step at each order a > 1, for add or remove (the larger).

    It is log E[(1 − q + q e^((2x−1)/(2z²)))^a] / (a − 1), x ~ N(0, z²): a binomial sum for whole
    orders, quadrature for the others. 0 for q = 0, ∞ for z = 0.

    Source: Mironov, Talwar and Zhang (2019), "Rényi Differential Privacy of the Sampled Gaussian
    Mechanism", Theorem 5 (which direction is worse) and Section 3.3.

    Departs: their series for fractional orders alternates; added up unsigned, as elsewhere, it is
    loose by up to 2.4 times. Here the integral is computed.
    """
    wanted = np.asarray(orders, dtype=float)  # (A,)
    check_rate(sample_rate)
    check_multiplier(noise_multiplier)
    if not (wanted > 1).all():
        raise UserError(f"orders must all be above 1; the smallest is {wanted.min()}")
    q, z = sample_rate, noise_multiplier
    if q == 0:
        return np.zeros(wanted.shape)
    if z < SMALLEST_MULTIPLIER:
        return np.full(wanted.shape, math.inf)
    if q == 1 or z > LARGEST_MULTIPLIER:
        return wanted / 2 / z / z
    logs = np.empty(wanted.shape)
    whole = (wanted == np.floor(wanted)) & (wanted <= 4096)
    if whole.any():
        logs[whole] = _log_moment_whole(q, z, wanted[whole])
    octaves = np.floor(np.log2(wanted))  # (A,)
    for octave in np.unique(octaves[~whole]):  # orders alike share a range of outcomes
        alike = ~whole & (octaves == octave)  # (A,)
        logs[alike] = _log_moment(q, z, wanted[alike])
    return np.maximum(logs, 0.0) / (wanted - 1)


def _log_moment_whole(q: float, z: float, orders: np.ndarray) -> np.ndarray:
    """log Σ_k C(a, k) (1 − q)^(a−k) q^k e^(k(k−1)/(2z²)), as log1p of what exceeds 1."""
    k = np.arange(2, int(orders.max()) + 1)  # (K,)
    log_factorial = gammaln(np.arange(len(k) + 2) + 1.0)  # (K + 2,)
    exponent = k * (k - 1.0) / (2 * z * z)
    with np.errstate(divide="ignore"):
        grown = exponent + np.log(-np.expm1(-exponent))  # log(e^x − 1); −inf at 0
    once = grown + k * (math.log(q) - math.log1p(-q)) - log_factorial[k]  # (K,)
    logs = []
    for order in orders.astype(int):
        there = slice(order - 1)  # k from 2 to the order
        terms = once[there] - log_factorial[order - k[there]]
        largest = max(float(terms.max()), -1e300)
        total = largest + log_of(float(np.exp(terms - largest).sum()))
        logs.append(total + log_factorial[order] + order * math.log1p(-q))
    return np.logaddexp(0.0, logs)


def _log_moment(q: float, z: float, orders: np.ndarray) -> np.ndarray:
    """The same for any order, as the sum of three integrals that are all positive.

    The one around x₀, where sampled and not sampled weigh the same, is by Gauss–Legendre. Far to
    the left only (1 − q)^a matters, far to the right only q^a e^(a(2x−1)/(2z²)): closed forms.
    """
    x0 = 0.5 + z * z * math.log((1 - q) / q)
    low = max(x0 - _KNEE * z * z, -14 * z)
    high = max(low, min(x0 + _KNEE * z * z, float(orders.max()) + 14 * z))
    intervals = max(1, math.ceil((high - low) / min(2 * z, 4 * z * z)))
    edges = np.linspace(low, high, intervals + 1)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + _NODES)).ravel()  # (K,)
    weights = np.maximum(np.broadcast_to(half, (intervals, len(_NODES))) * _WEIGHTS, 1e-300).ravel()
    base = np.logaddexp(math.log1p(-q), math.log(q) + (x - 0.5) / (z * z))  # (K,)
    density = -0.5 * (x / z) ** 2 - math.log(z * math.sqrt(2 * math.pi)) + np.log(weights)
    exponents = orders[:, None] * base + density  # (A, K)
    largest = exponents.max(axis=1)  # (A,)
    knee = largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1))
    left = orders * math.log1p(-q) + log_ndtr(low / z)
    right = orders * math.log(q) + orders * (orders - 1) / (2 * z * z)
    right = right + log_ndtr((orders - high) / z)
    return logsumexp([left, knee, right], axis=0) + _ROUNDING


def epsilon_from_rdp(
    rdp: np.ndarray, *, orders: Sequence[float], delta: float
) -> Tuple[float, float]:
    """Return ε at δ, and the order that gives it.

    Source: Canonne, Kamath and Steinke (2020), Proposition 12 (as Balle et al., 2020).
    """
    check_delta(delta)
    if np.isnan(rdp).any():
        raise ValueError("a Rényi divergence is NaN")
    a = np.asarray(orders, dtype=float)  # (A,)
    epsilons = rdp + np.log1p(-1 / a) - (math.log(delta) + np.log(a)) / (a - 1)
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(a[best])


def epsilon_poisson_rdp(composition: Composition, *, delta: float) -> float:
    """Return ε of Poisson steps by Rényi divergences: above `poisson_pld`, and quicker.

    Guarantee: a bound for zero-out, add and remove. Where ε without sampling is smaller (large ρ,
    or q = 1), that closed form at the optimal order is taken, whatever the grid of orders.
    """
    check_delta(delta)
    if composition.neighbours != "zero_out":
        raise UserError(
            f"poisson_rdp accounts for zero-out neighbours, not for {composition.neighbours}; use "
            "poisson_pld"
        )
    events = composition.only("poisson")
    if not events:
        return 0.0
    spent = np.zeros(len(ORDERS))  # (A,)
    for event in events:
        spent += event.count * _divergences(event.sample_rate, event.effective_noise_multiplier)
    by_order, _ = epsilon_from_rdp(spent, orders=ORDERS, delta=delta)
    return min(by_order, exp_of(log_epsilon_renyi(log_rho_of(events), delta)))


@lru_cache(maxsize=256)
def _divergences(q: float, z: float) -> np.ndarray:
    """Of one step at `ORDERS`, kept since epochs repeat multipliers and reports repeat epochs."""
    return rdp_sampled_gaussian(sample_rate=q, noise_multiplier=z, orders=ORDERS)
