"""Central limit of Poisson-sampled Gaussians: quick, and NOT a bound."""

from __future__ import annotations

import math

import numpy as np

from edp_mx.accounting.events import Composition
from edp_mx.accounting.lognumber import log_of
from edp_mx.accounting.zcdp import log_epsilon_exact


def log_mu_gdp_clt(composition: Composition) -> float:
    """Return log μ of the Gaussian that sampled Gaussians approach over many small steps.

    μ² = Σ q² (e^(1/z²) − 1). NOT a bound: the error of the limit is often on the unsafe side, and
    large for small z or few steps. −inf without steps (μ = 0); inf for z = 0.

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
        logs.append(math.log(event.count) + 2 * math.log(event.sample_rate) + grown)
    return 0.5 * float(np.logaddexp.reduce(logs)) if logs else -math.inf


def log_epsilon_gdp_clt(composition: Composition, delta: float) -> float:
    """Return log ε of that Gaussian at δ. NOT a bound; print it only with that warning."""
    return log_epsilon_exact(2 * log_mu_gdp_clt(composition) - math.log(2), delta)
