"""Numbers beyond a double."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.accounting.lognumber import LogNumber, exp_of, log_of


@given(st.floats(1e-300, 1e300))
def test_plain_numbers_come_back(value):
    number = LogNumber(math.log(value))
    assert number.value == pytest.approx(value, rel=1e-12)
    assert number.log10 == pytest.approx(math.log10(value), rel=1e-12, abs=1e-14)


def test_the_ends():
    assert LogNumber(math.log(sys.float_info.max)).value is not None
    assert LogNumber(710.0).value is None and LogNumber(710.0).log10 is not None
    assert LogNumber(-math.inf).value == 0.0 and LogNumber(-math.inf).log10 is None
    infinite = LogNumber(math.inf)
    assert infinite.is_infinite and infinite.value is None and infinite.log10 is None
    assert (exp_of(1e4), exp_of(-math.inf), log_of(0.0)) == (math.inf, 0.0, -math.inf)
