"""The worst pair of a Poisson step between exchanged records (docs/privacy.md, section 4)."""

import numpy as np
import pytest

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.pld.interval import epsilon_poisson_pld

SIDE = np.linspace(-9.0, 9.0, 1201)  # of a grid of standard normal numbers, both ways


def divergence(a, b, *, q, z, s):
    """H_s of (1 − q) N(0) + q N(a) against (1 − q) N(0) + q N(b), by a sum over the plane.

    a, b: vectors (2,) in units of one record's contribution; the noise is N(0, z² I).
    """
    x, y = np.meshgrid(SIDE, SIDE)
    density = np.exp(-(x**2 + y**2) / 2) / (2 * np.pi) * (SIDE[1] - SIDE[0]) ** 2

    def ratio(v):
        v = np.asarray(v) / z
        return np.exp(v[0] * x + v[1] * y - v @ v / 2)

    p, other = ((1 - q) + q * ratio(v) for v in (a, b))
    return float((np.maximum(p - s * other, 0) * density).sum())


@pytest.mark.parametrize("q", [0.05, 0.5])
@pytest.mark.parametrize("z", [0.7, 2.0])
def test_opposite_records_of_full_length_are_the_worst(q, z, generator):
    for s in (0.7, 1.0, 1.5, 3.0):
        worst = divergence((1, 0), (-1, 0), q=q, z=z, s=s)
        for _ in range(6):
            angles, lengths = generator.uniform(0, 2 * np.pi, 2), generator.uniform(0, 1, 2)
            a, b = (r * np.array([np.cos(t), np.sin(t)]) for r, t in zip(lengths, angles))
            assert divergence(a, b, q=q, z=z, s=s) <= worst * (1 + 1e-5) + 1e-12


def test_the_accountant_composes_that_pair():
    """δ of one step at the ε that the accountant gives is the δ that was asked for."""
    q, z, delta = 0.2, 1.0, 1e-3
    step = Composition("replace_one", [Event("poisson", z, 1, q)])
    found = epsilon_poisson_pld(step, delta=delta)
    at = divergence((1, 0), (-1, 0), q=q, z=z, s=float(np.exp(found.upper)))
    assert at == pytest.approx(delta, rel=2e-3)
