"""Central limit of Poisson-sampled Gaussians: quick, and NOT a bound."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.lognumber import LARGEST_LOG, log_of
from edp_mx.dp.accounting.zcdp import log_epsilon_exact

_ROOT = math.sqrt(2)
_SMALL = 1e-4  # 1/z below which differences lose too many digits


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
        rest = 0.5 * (math.erf(1.5 * s / _ROOT) - 3 * math.erf(0.5 * s / _ROOT))
        more = rest * math.exp(-min(grown + log_phi, LARGEST_LOG))
    return math.log(2) + grown + log_phi + math.log1p(more)


def log_epsilon_gdp_clt(composition: Composition, delta: float) -> float:
    """Return log ε of that Gaussian at δ. NOT a bound; print it only with that warning."""
    return log_epsilon_exact(2 * log_mu_gdp_clt(composition) - math.log(2), delta)
