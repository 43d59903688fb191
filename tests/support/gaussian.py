"""δ of one Gaussian at ε, in closed form: the oracle of shuffled epochs."""

import math

from scipy.stats import norm


def gaussian_delta(epsilon, mu):
    """δ(ε) of N(μ, 1) and N(0, 1). Source: Balle and Wang (2018), Theorem 8."""
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon + norm.logsf(epsilon / mu + mu / 2))
