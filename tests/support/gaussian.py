"""δ of one Gaussian at ε, in closed form: the oracle of shuffled epochs."""

import math

from scipy.optimize import brentq
from scipy.stats import norm


def gaussian_delta(epsilon, mu):
    """δ(ε) of N(μ, 1) and N(0, 1). Source: Balle and Wang (2018), Theorem 8."""
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon + norm.logsf(epsilon / mu + mu / 2))


def gaussian_epsilon(delta, mu):
    """The ε whose δ that is."""
    return brentq(lambda e: gaussian_delta(e, mu) - delta, 0, mu**2 / 2 + 40 * mu, rtol=1e-12)
