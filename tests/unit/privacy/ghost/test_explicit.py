"""Gradients that are held: norms of any range, sums that leave out what is not finite."""

import numpy as np
import pytest
from ghost_layers import assert_norms, drawn

from edp_mx.privacy.ghost import explicit


@pytest.mark.parametrize("shape", [(1, 1), (3, 127), (3, 128), (2, 5, 77), (4, 0), (2, 20_000)])
def test_norms(shape):
    gradients = drawn(0, *shape)
    assert_norms(explicit.squared_norms(gradients), gradients.astype(np.float64))


@pytest.mark.parametrize("value", [1e-40, 1e-30, 1e-21, 0.1, 1e18, 1e21, 3e38])
def test_norms_beyond_the_range_of_float32(value):
    gradients = np.full((2, 100_003), value, np.float32)
    gradients[1] = 0
    assert_norms(explicit.squared_norms(gradients), gradients.astype(np.float64))


def test_an_example_that_is_not_finite_has_no_finite_norm_and_spoils_no_other():
    gradients = np.ones((4, 200), np.float32)
    gradients[1, 7], gradients[2, 8] = np.inf, np.nan
    norms = explicit.squared_norms(gradients)
    assert list(np.isfinite(norms)) == [True, False, False, True]
    total = np.zeros(200, np.float32)
    explicit.add_sum(total, gradients, np.array([0.5, 0.0, 0.0, 0.25]))
    explicit.add_sum(total, gradients, np.zeros(4))
    np.testing.assert_array_equal(total, np.full(200, 0.75, np.float32))


def test_a_factor_that_float32_would_round_up_counts_as_none():
    """1e-45 is float32's smallest number, 1.4e-45: this example would count for 1.4 times C."""
    total = np.zeros(1, np.float32)
    explicit.add_sum(total, np.full((1, 1), 3e38, np.float32), np.array([1e-45]))
    assert total[0] == 0


@pytest.mark.parametrize("num_positions", [1, 127, 128, 129, 5000])
def test_long_sums_do_not_drift(num_positions):
    gradients = np.full((2, num_positions, 3), 0.1, np.float32)
    sums = explicit.sums_over_positions(gradients)
    np.testing.assert_allclose(sums, num_positions * np.float64(np.float32(0.1)), rtol=3e-6)


def test_infinities_of_opposite_sign_stay_with_their_example():
    gradients = np.ones((3, 5, 2), np.float32)
    gradients[1, 0], gradients[1, 3] = np.inf, -np.inf
    sums = explicit.sums_over_positions(gradients)  # a warning would be an error
    assert np.isnan(sums[1]).all()
    np.testing.assert_array_equal(sums[[0, 2]], np.full((2, 2), 5.0))
