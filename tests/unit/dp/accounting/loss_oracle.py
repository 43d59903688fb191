"""ε of composed pairs another way: no lattice, but an integral over the characteristic function.

δ(ε) = 1/(2πi) ∫ e^(K(s) − sε) / (s (s + 1)) ds along Re s = c > 0, with K the sum over the steps of
log E e^(sL), each by Gauss–Legendre over the outcomes; nothing in it is shared with the package.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from support.gaussian import gaussian_delta

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def loss_and_mass(direction, q, z):
    """Losses and probabilities of one step at quadrature nodes; a kink only at the end of one."""
    panels = np.unique(
        np.concatenate([0.5 + z / 3 * np.arange(-50, 1), 0.5 + z / 3 * np.arange(90)])
    )
    half = np.diff(panels)[:, None] / 2
    x = (panels[:-1, None] + half * (1 + NODES)).ravel()
    dx = (half * WEIGHTS).ravel()

    def ratio(x):
        return np.logaddexp(math.log1p(-q), math.log(q) + (x - 0.5) / z**2)

    absent = norm.pdf(x, 0, z) * dx
    if direction == "remove":
        return ratio(x), absent * np.exp(ratio(x))
    if direction == "add":
        return -ratio(-x), norm.pdf(x, 0, z) * dx
    if direction == "replace":
        return ratio(x) - ratio(-x), absent * np.exp(ratio(x))
    loss, mass = ratio(x), absent * np.exp(ratio(x))
    loss, mass = loss[x > 0.5], mass[x > 0.5]
    mirrored = mass * np.exp(-loss)
    rest = 1 - mass.sum() - mirrored.sum()
    return np.concatenate([loss, [0.0], -loss]), np.concatenate([mass, [rest], mirrored])


def epsilon_by_integral(steps, delta, direction):
    """ε of steps (q, z, count) at δ."""
    parts = [(*loss_and_mass(direction, q, z), n) for q, z, n in steps]

    def log_moment(s):
        s = np.atleast_1d(s)
        return sum(n * np.log(np.exp(np.multiply.outer(s, loss)) @ p) for loss, p, n in parts)

    def moments(c, h=1e-3):
        k = [float(log_moment(c * (1 + i * h))[0].real) for i in (-1, 0, 1)]
        return k[1], (k[2] - k[0]) / (2 * c * h), (k[2] - 2 * k[1] + k[0]) / (c * h) ** 2

    def chernoff(c):
        k, mean, _ = moments(c)
        return k - c * mean - math.log(delta)

    high = 0.5
    while chernoff(high) > 0:
        high *= 1.4
    c = brentq(chernoff, 1e-3, high)
    k, mean, variance = moments(c)
    stddev, top = math.sqrt(variance), 12.0
    while float(log_moment(c + 1j * top / stddev)[0].real) - k > -34:
        top *= 1.3
    h = 2 * math.pi / (24 * stddev)
    s = c + 1j * h * (np.arange(int(top / stddev / h)) + 0.5)
    ks = log_moment(s)

    def excess(epsilon):
        return float((np.exp(ks - s * epsilon) / (s * (s + 1))).real.sum() * h / math.pi) - delta

    low = mean  # where Chernoff's bound is δ, so that δ itself is less
    while excess(low) <= 0:
        low -= 0.1 * stddev
    return brentq(excess, low, mean, xtol=1e-13)


def delta_of_one_step(direction, q, z, epsilon):
    """δ(ε) in closed form, ε ≥ 0, for remove and add."""
    if direction == "remove":
        shifted = math.log1p(math.expm1(epsilon) / q)
        return q * gaussian_delta(shifted, 1 / z)
    level = (1 - math.exp(epsilon) * (1 - q)) / (math.exp(epsilon) * q)
    if level <= 0:
        return 0.0
    # E_N0[(1 − α(1 − q) − α q r)+], α = e^ε: the Gaussians with N1 and N0 exchanged
    log_level = math.log(level)
    place = 0.5 + z * z * log_level
    return math.exp(epsilon) * q * (level * norm.cdf(place / z) - norm.cdf((place - 1) / z))
