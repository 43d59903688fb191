"""Gaussian, independent, never the same twice."""

import numpy as np
import pytest
from scipy import stats

from edp_mx.errors import UserError
from edp_mx.privacy.noise import PAIRS, NoiseStream, refuse_equal

SIZE = 1_000_000


def test_the_numbers_are_standard_normal():
    values = NoiseStream.from_operating_system().normal(SIZE).astype(np.float64)
    assert stats.kstest(values, "norm").pvalue > 1e-6
    assert abs(values.mean()) * SIZE**0.5 < 5
    assert abs(values.var() - 1) * (SIZE / 2) ** 0.5 < 5
    assert abs((values**4).mean() - 3) * (SIZE / 96) ** 0.5 < 5
    for bound in (3, 4):  # the tails, where clipping would first show
        expected = 2 * stats.norm.sf(bound) * SIZE
        assert abs((abs(values) > bound).sum() - expected) < 6 * expected**0.5


def test_a_wrong_scale_would_be_noticed():
    values = NoiseStream.from_operating_system().normal(SIZE).astype(np.float64)
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(values * wrong, "norm").pvalue < 1e-12


@pytest.mark.parametrize("lag", [1, 2, PAIRS, 2 * PAIRS])
def test_neighbours_and_partners_are_uncorrelated(lag):
    values = NoiseStream.from_operating_system().normal(SIZE).astype(np.float64)
    assert abs((values[lag:] * values[:-lag]).mean()) * (SIZE - lag) ** 0.5 < 5
    squares = values**2 - 1  # partners share a radius: they must not show it
    assert abs((squares[lag:] * squares[:-lag]).mean()) / 2 * (SIZE - lag) ** 0.5 < 6


def test_two_streams_and_two_calls_differ():
    one, other = NoiseStream.from_operating_system(), NoiseStream.from_operating_system()
    first, second, elsewhere = one.normal(SIZE), one.normal(SIZE), other.normal(SIZE)
    assert one.fingerprint != other.fingerprint
    for x, y in ((first, second), (first, elsewhere)):
        assert abs(np.corrcoef(x, y)[0, 1]) * SIZE**0.5 < 5
        assert not (x == y).all()


def test_an_insecure_stream_repeats_itself_but_differs_by_rank():
    again = [NoiseStream.insecure(seed=7, rank=rank).normal(1000) for rank in (0, 0, 1)]
    assert (again[0] == again[1]).all()
    assert not (again[0] == again[2]).any()


@pytest.mark.parametrize("size", [1, 2, 3, 2 * PAIRS - 1, 2 * PAIRS, 2 * PAIRS + 1, 5 * PAIRS])
def test_scale_and_add_is_scale_then_add(size, generator):
    array = generator.normal(size=size).astype(np.float32)
    noise = NoiseStream.insecure(seed=1, rank=0).normal(size)
    result = array.copy()
    NoiseStream.insecure(seed=1, rank=0).scale_and_add(result, factor=0.3, stddev=2.5)
    np.testing.assert_allclose(result, 0.3 * array + 2.5 * noise, rtol=1e-5, atol=1e-5)


def test_no_noise_only_scales():
    array = np.ones(5, np.float32)
    NoiseStream.from_operating_system().scale_and_add(array, factor=0.5, stddev=0.0)
    assert (array == 0.5).all()


def test_equal_keys_are_refused_by_rank():
    refuse_equal(["a", "b", "c"])
    with pytest.raises(UserError, match="workers 1 and 2"):
        refuse_equal(["a", "b", "b"])


@pytest.mark.parametrize("size", [1, 7, 2 * PAIRS, 2 * PAIRS + 3])
@pytest.mark.parametrize("stddev", [0.0, 0.3])
def test_from_a_source_it_is_as_in_place_and_leaves_the_source(generator, size, stddev):
    values = generator.normal(size=size).astype(np.float32)
    in_place, source, target = values.copy(), values.copy(), np.full(size, np.nan, np.float32)
    for array, given in ((in_place, None), (target, source)):
        NoiseStream.insecure(seed=1, rank=0).scale_and_add(
            array, factor=0.7, stddev=stddev, source=given
        )
    assert (target == in_place).all() and (source == values).all()


def test_the_key_of_the_masks_is_another_secret():
    one, other = NoiseStream.from_operating_system(), NoiseStream.from_operating_system()
    assert one.mask_key != other.mask_key and one.mask_key.hex() != one.fingerprint
    again = [NoiseStream.insecure(seed=1, rank=rank).mask_key for rank in (0, 0, 1)]
    assert again[0] == again[1] != again[2]
