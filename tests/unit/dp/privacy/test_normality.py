"""Both kinds of noise are normal: moments, distribution, tails to 6σ, neighbours, workers.

Keys are fixed, so that a test that passes once passes always; the bounds are those that fresh keys
would keep: 60 figures within 6 standard errors of a normal number's, which one run in 10⁷ misses.
"""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.normality import Normality, correlation, normal

from edp_mx.dp.privacy.grid_gaussian import grid_of
from edp_mx.dp.privacy.noise import NoiseStream

KINDS = pytest.mark.parametrize("gaussian", ["plain", "hardened"])
BLOCK, WORKERS, ERRORS = 1 << 20, 2, 6


def grid(gaussian):
    return grid_of(1.0) if gaussian == "hardened" else 0.0


def streams(gaussian):
    return [NoiseStream.insecure(seed=19, rank=r, gaussian=gaussian) for r in range(WORKERS)]


def examine(gaussian, blocks, change=lambda values: values):
    """Draws so many blocks on each worker and refuses what is not normal; `change`: a fault."""
    found, pairs = [Normality(grid(gaussian)) for _ in range(WORKERS)], []
    for drawn in zip(
        *(map(partial(normal, stream), [BLOCK] * blocks) for stream in streams(gaussian))
    ):
        drawn = [change(values) for values in drawn]
        for normality, values in zip(found, drawn):
            normality.add(values)
        pairs += [correlation(one, other) for one, other in combinations(drawn, 2)]
    for normality in found:
        normality.refuse(errors=ERRORS)
    # The mean of independent correlations, each in its own standard errors.
    assert (abs(np.sum(pairs, axis=0)) / len(pairs) ** 0.5 < ERRORS).all()


@KINDS
def test_a_million_numbers_of_each_worker_are_normal(gaussian):
    examine(gaussian, 1)


@pytest.mark.slow
@KINDS
def test_a_hundred_million_numbers_are_normal(gaussian):
    """48 blocks of two workers: 1.0066·10⁸; beyond 6σ, 0.1 are expected on each side."""
    examine(gaussian, 48)


@KINDS
@pytest.mark.parametrize(
    "change",
    [
        lambda values: values * np.float32(1.01),
        lambda values: values + np.float32(0.01),
        lambda values: np.clip(values, -4, 4),
        lambda values: np.where(values > 3.9, np.float32(7), values),
        lambda values: np.repeat(values[::2], 2),
        lambda values: np.sign(values) * abs(values) ** np.float32(1.02),
        lambda values: np.where(abs(values) < 0.01, np.float32(0), values),
    ],
    ids=["scale", "shift", "cut", "spike", "twice", "shape", "hole"],
)
def test_what_is_not_normal_is_noticed(gaussian, change):
    with pytest.raises(AssertionError):
        examine(gaussian, 1, change)
