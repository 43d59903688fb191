"""The tests of A0 accept the right noise and refuse the wrong one."""

import numpy as np
import pytest

from edp_mx.attacks.audit.noise import _correlation, _spread

SIGNIFICANCE = 1e-6


@pytest.mark.parametrize(
    ("factor", "is_passed"),
    [(1.0, True), (2 / 3, False), (1.5, False), ((7 / 8) ** 0.5, False), (8**0.5, False)],
)
def test_the_right_stddev_passes_and_others_fail(factor, is_passed, generator):
    parts = [generator.normal(scale=factor * 0.3, size=20_000).astype("f4") for _ in range(3)]
    assert _spread("noise", parts, 0.3, SIGNIFICANCE).is_passed is is_passed


def test_the_interval_is_that_of_chi_square(generator):
    # 2,000 audits of 50 true draws at 10 %: 200 ± 5 σ of 13.4 may fail
    failed = sum(
        not _spread("noise", [generator.normal(size=50)], 1.0, 0.1).is_passed for _ in range(2000)
    )
    assert abs(failed - 200) < 67


def test_silence_is_no_noise():
    silent = np.zeros(1000, np.float32)
    assert not _spread("noise", [silent], 1.0, SIGNIFICANCE).is_passed
    check = _correlation("workers", silent, np.arange(1000.0), SIGNIFICANCE)
    assert np.isnan(check.measured) and not check.is_passed
