"""The Poisson accountant where records are drawn rarely: losses with a thin, long tail."""

import math
import time

import numpy as np
import pytest
from loss_oracle import epsilon_by_integral
from scipy.stats import binom

from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.pld.convolution import Group, Lattice, Mass, convolve
from edp_mx.dp.accounting.pld.interval import DirectedBounds, epsilon_poisson_pld

RARE = [  # q, z, steps, δ
    (6.4e-5, 1.0, 15625, 5e-7),
    (6.4e-5, 0.8, 15625, 5e-7),
    (1e-4, 1.0, 550, 6e-6),
]


def slow(case):
    """A case like the one before it."""
    return pytest.param(*case, marks=pytest.mark.slow)


def interval(q, z, steps, delta, neighbours="zero_out"):
    events = [Event("poisson", z, steps, q)]
    return epsilon_poisson_pld(Composition(neighbours, events), delta=delta)


@pytest.mark.parametrize("q, z, steps, delta", [RARE[0], slow(RARE[1]), RARE[2]])
def test_rare_draws_against_the_integral(q, z, steps, delta):
    found = interval(q, z, steps, delta)
    exact = epsilon_by_integral([(q, z, steps)], delta, "remove")
    assert found.lower <= exact <= found.upper
    assert found.upper <= 1.001 * exact and found.lower >= 0.999 * exact


@pytest.mark.parametrize("direction", ["add", "replace", "swap"])
def test_rare_draws_in_other_directions(direction):
    q, z, steps, delta = RARE[2]
    bounds = DirectedBounds(direction, [Event("poisson", z, steps, q)], delta)
    while bounds.refine():
        pass
    exact = epsilon_by_integral([(q, z, steps)], delta, direction)
    assert bounds.lower() <= exact <= bounds.upper <= 1.001 * exact


@pytest.mark.parametrize(
    "q, z, steps, delta",
    [(1e-5, 1.0, 1000, 1e-7), (1e-3, 0.7, 3000, 1e-10), (0.3, 30.0, 1000, 1e-6), (1e-4, 8, 300, 0)],
)
def test_the_interval_is_narrow_whatever_the_rate(q, z, steps, delta):
    found = interval(q, z, steps, delta or 1e-8)
    assert 0 < found.lower <= found.upper <= 1.005 * found.lower


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one", "replace_in_mean"])
def test_the_interval_is_narrow_over_a_wide_range(neighbours, generator):
    seen = 0
    for _ in range(100):
        q, z = 10 ** generator.uniform(-7, 0), 10 ** generator.uniform(-0.5, 1.3)
        steps, delta = int(10 ** generator.uniform(0, 4.3)), 10 ** generator.uniform(-9, -2)
        started = time.process_time()
        found = interval(q, z, steps, delta, neighbours)
        assert time.process_time() - started < 60, (q, z, steps, delta)
        if 1e-4 < found.upper < 1e4:
            seen += 1
            is_rare = q < 3e-6 and z < 0.7 and delta < 1e-6  # said to be wider in `pld.interval`
            most = math.inf if is_rare else 1.005
            assert found.lower <= found.upper <= most * found.lower, (q, z, steps, delta)
    assert seen > 30


@pytest.mark.parametrize("steps", [1, 7, 100_000])
@pytest.mark.parametrize("up", [0.3, 1e-5])
def test_sums_of_two_points_are_binomial_within_the_error(steps, up):
    """The exact probabilities are SciPy's, good to 1e-12 of themselves."""
    mean, stddev = 3 * steps * up, 3 * np.sqrt(steps * up)
    first = int(mean - 20 * stddev - 60)
    lattice = Lattice(0.5, first, int(40 * stddev) + 128, 0.0, (1.0, 1.0))
    step = Mass(np.array([-1, 2]), np.log([1 - up, up]))
    shift = Lattice(0.5, first - steps, lattice.size, 0.0, (1.0, 1.0))
    found = convolve(shift, [Group([step], [(steps, (1.0,))])])
    places = first - steps + np.arange(lattice.size)  # steps · (−1) + 3 k
    k, rest = np.divmod(places + steps, 3)
    exact = np.where(rest == 0, binom.pmf(k, steps, up), 0.0)
    wrong = np.abs(found.tilted - exact)
    assert (wrong <= found.rounding + 1e-10 * exact).all()
    assert np.sqrt((wrong**2).sum()) <= found.rounding_norm + 1e-10
    assert found.rounding_norm < 1e-10


@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one", "replace_in_mean"])
def test_what_is_drawn_less_than_delta_costs_nothing(neighbours):
    assert interval(1e-9, 0.3, 100, 1.1e-7, neighbours).upper == 0.0
    assert interval(1e-3, 0.3, 100, 1e-4, neighbours).lower > 0.0
