"""zCDP of Gaussian releases, its three conversions to (ε, δ), and two estimates of sampled ones."""

from __future__ import annotations

import math
from typing import Callable, Dict, Iterable, Tuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from edp_mx.dp.accounting.choices import check_delta
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.lognumber import LARGEST_LOG, exp_of, log_of

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # on [−1, 1]
_SMALL = 1e-4  # 1/z below which differences lose too many digits


def log_rho_of(events: Iterable[Event]) -> float:
    """Return log ρ of composed Gaussian releases: ρ = Σ count / (2 z²).

    That is ρ of shuffled epochs; of Poisson steps it is ρ as if each record were in every step.
    −inf without events; +inf where a multiplier is 0.

    Source: Bun and Steinke (2016), Proposition 1.6 and Lemma 1.7.
    """
    terms = [
        log_of(event.count) - math.log(2) - 2 * log_of(event.effective_noise_multiplier)
        for event in events
    ]
    return float(np.logaddexp.reduce(terms)) if terms else -math.inf


def log_epsilon_simple(log_rho: float, delta: float) -> float:
    """Return log ε of ε = ρ + 2 √(ρ ln 1/δ), the paper's conversion.

    Source: Bun and Steinke (2016), Proposition 1.3.
    """
    _check(log_rho, delta)
    root = math.log(2) + 0.5 * (log_rho + log_of(-math.log(delta)))
    return float(np.logaddexp(log_rho, root)) if log_rho < math.inf else math.inf


def log_epsilon_renyi(log_rho: float, delta: float) -> float:
    """Return log ε at the optimal Rényi order 1 + x; −inf where ε would be negative.

    ε(x) = (1 + x) ρ + (ln 1/δ − ln(1 + x)) / x + ln(x / (1 + x)) is smallest where
    ρ x² + ln(1 + x) = ln 1/δ, which has one root; there ε = ρ (1 + 2x) − ln(1 + 1/x).

    Source: Canonne, Kamath and Steinke (2020), Proposition 12, at the order that is best for
    Rényi divergences αρ.
    """
    _check(log_rho, delta)
    target = -math.log(delta)
    if log_rho == math.inf:
        return math.inf
    if target == 0 or log_rho == -math.inf:
        return -math.inf

    def excess(log_x: float) -> float:
        return exp_of(log_rho + 2 * log_x) + float(np.logaddexp(0.0, log_x)) - target

    low = min(0.5 * (log_of(target / 2) - log_rho), log_of(target / 2))
    high = min(0.5 * (log_of(target) - log_rho), log_of(math.expm1(target)))
    log_x = _root(excess, low, high)
    grown = log_rho + float(np.logaddexp(0.0, math.log(2) + log_x))
    saved = log_of(float(np.logaddexp(0.0, -log_x)))
    return grown + math.log(-math.expm1(saved - grown)) if saved < grown else -math.inf


def log_epsilon_exact(log_rho: float, delta: float) -> float:
    """Return log ε of one Gaussian with μ² = 2ρ, to which composed Gaussians are equivalent.

    With ε = μ (t + μ/2), t solves Φ(−t) − e^(−t²/2) erfcx((t + μ)/√2)/2 = δ. −inf (ε = 0) where δ
    alone covers everything, δ ≥ Φ(μ/2) − Φ(−μ/2).

    Source: Balle and Wang (2018), Theorem 8; docs/privacy.md, section 4.
    """
    _check(log_rho, delta)
    if log_rho == math.inf:
        return math.inf
    mu = exp_of(0.5 * (math.log(2) + log_rho))
    if delta >= math.erf(mu / math.sqrt(8)):
        return -math.inf
    high = -float(ndtri(delta))
    t = _root(lambda t: log_of(delta) - log_of(_gaussian_delta(t, mu)), max(-mu / 2, -40.0), high)
    return log_rho + math.log1p(2 * t / mu) if 2 * t > -mu else -math.inf


CONVERSIONS: Dict[str, Callable[[float, float], float]] = {
    "exact": log_epsilon_exact,
    "renyi": log_epsilon_renyi,
    "simple": log_epsilon_simple,
}


def yu_rs_of_steps(
    steps: Iterable[Tuple[float, float, int]], *, delta: float, largest_order: float = 200.0
) -> Dict[str, float]:
    """Return ε of sampled batches as Yu et al. (2019) estimate it. NOT a bound.

    ρ = Σ q² / z² over the steps, given as q, z and their number; only orders up to
    u = min z² ln(1 / (q z)) + 1 are trusted. ε is infinite where u ≤ 1, q z ≥ 1.

    Source: Yu et al. (2019), Theorem 5, whose authors call it approximate.
    """
    check_delta(delta)
    drawn = np.array([step for step in steps if step[0] != 0], dtype=float).reshape(-1, 3)
    rates, multipliers, counts = drawn.T  # (T,) each
    if len(drawn) == 0:
        return {"rho": 0.0, "largest_order": largest_order, "epsilon": 0.0}
    if multipliers.min() <= 0:
        return {"rho": math.inf, "largest_order": 1.0, "epsilon": math.inf}
    rho = float(np.sum(counts * (rates / multipliers) ** 2))
    orders = multipliers**2 * -np.log(rates * multipliers) + 1  # (T,)
    order = min(largest_order, float(orders.min()))
    target = -math.log(delta)
    if order >= 1 + math.sqrt(target / rho):
        epsilon = rho + 2 * math.sqrt(rho * target)
    else:
        epsilon = rho * order + target / (order - 1) if order > 1 else math.inf
    return {"rho": rho, "largest_order": order, "epsilon": epsilon}


def log_mu_gdp_clt(composition: Composition) -> float:
    """Return log μ of the Gaussian that sampled Gaussians approach over many small steps.

    μ² is the sum of q² v(z), where v is the variance of how much likelier one record makes an
    outcome: e^(1/z²) − 1 where it is there or not, 2 (e^(1/z²) − e^(−1/z²)) where one replaces
    another in the opposite direction, and that of `_in_one_ball` where both lie in one ball. NOT a
    bound: the error of the limit is often on the unsafe side, and large for small z or few steps.
    −inf without steps (μ = 0); inf for z = 0.

    Source: Bu, Dong, Long and Su (2020), "Deep Learning with Gaussian Differential Privacy",
    Theorem 5 and Equation 6.
    """
    logs = []
    for event in composition.only("poisson"):
        if event.sample_rate == 0:
            continue
        z = event.effective_noise_multiplier
        exponent = 1 / (z * z) if z > 1e-150 else math.inf
        grown = exponent + log_of(-math.expm1(-exponent))  # log(e^x − 1)
        if composition.neighbours == "replace_one":
            grown += math.log(2) + math.log1p(math.exp(-exponent))  # log 2 (e^x − e^−x)
        elif composition.neighbours == "replace_in_mean":
            grown = _in_one_ball(math.sqrt(exponent), grown)
        logs.append(math.log(event.count) + 2 * math.log(event.sample_rate) + grown)
    return 0.5 * float(np.logaddexp.reduce(logs)) if logs else -math.inf


def _in_one_ball(s: float, grown: float) -> float:
    """Return log 2 (e^(s²) Φ(3s/2) + 3 Φ(−s/2) − 2), of the symmetric pair of `pld/pairs.py:_swap`.

    Args:
        s: 1/z.
        grown: log(e^(s²) − 1).

    Source: Dong, Roth and Su (2022), "Gaussian Differential Privacy", Corollary 4.
    """
    log_phi = float(log_ndtr(1.5 * s))
    if s < _SMALL:
        more = -s / math.sqrt(2 * math.pi)  # the first term of the series of what follows
    else:
        rest = 0.5 * (math.erf(1.5 * s / math.sqrt(2)) - 3 * math.erf(0.5 * s / math.sqrt(2)))
        more = rest * math.exp(-min(grown + log_phi, LARGEST_LOG))
    return math.log(2) + grown + log_phi + math.log1p(more)


def log_epsilon_gdp_clt(composition: Composition, delta: float) -> float:
    """Return log ε of that Gaussian at δ. NOT a bound; print it only with that warning."""
    return log_epsilon_exact(2 * log_mu_gdp_clt(composition) - math.log(2), delta)


def _gaussian_delta(t: float, mu: float) -> float:
    """δ of one Gaussian at ε = μ (t + μ/2), t ≥ −μ/2, without cancellation for small μ.

    φ(t) [R(t) − R(t + μ)] with Mills' ratio R; for small μ as the integral of −R' = 1 − x R(x).
    """
    if mu >= 1:
        tail = 0.5 * math.exp(-t * t / 2) * erfcx((t + mu) / math.sqrt(2))
        return float(ndtr(-t) - tail)
    x = t + mu * (1 + _NODES) / 2  # (12,)
    slope = 1 - x * math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))  # (12,)
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return float(density * mu / 2 * (_WEIGHTS @ slope))


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Root of an increasing function; an end of the bracket where rounding hides the crossing."""
    if increasing(high) <= 0:
        return high
    if increasing(low) >= 0:
        return low
    return float(brentq(increasing, low, high, xtol=1e-15, rtol=1e-15, maxiter=300))


def _check(log_rho: float, delta: float) -> None:
    """Refuse an impossible δ; a ρ that is NaN is the caller's mistake, not the user's."""
    check_delta(delta)
    if math.isnan(log_rho):
        raise ValueError("log rho is NaN")
