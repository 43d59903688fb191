"""The learning rate's factor against its closed form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.training.config import Schedule

totals = st.integers(1, 400)
fractions = st.floats(0, 0.99)


@given(st.sampled_from(["constant", "linear"]), fractions, totals)
def test_it_lies_between_nothing_and_one_and_no_step_is_lost(kind, fraction, total):
    factors = [Schedule(kind, fraction).factor(step, total) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)
    peak = max(range(total), key=factors.__getitem__)
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)


def test_linear_rises_and_falls_by_equal_steps():
    schedule = Schedule("linear", 0.1)
    factors = [schedule.factor(step, 100) for step in range(101)]
    assert factors[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert factors[10:] == pytest.approx([(100 - step) / 90 for step in range(10, 101)])
    assert schedule.factor(1000, 100) == 0


def test_constant_stays_at_the_top():
    factors = [Schedule("constant", 0.2).factor(step, 10) for step in range(10)]
    assert factors == [0.5] + [1.0] * 9
    assert {Schedule().factor(step, 10) for step in range(10)} == {1.0}
