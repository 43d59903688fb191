"""Decays against the paper's, and at the ends of the number range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import one_sentence

from edp_mx.dp.accounting.decay import Decay

DECAYS = st.one_of(
    st.just(Decay()),
    st.builds(Decay, st.just("linear"), st.floats(0, 50)),
    st.builds(Decay, st.just("exponential"), st.floats(0, 5)),
)


@given(DECAYS, st.integers(0, 60))
def test_factor_agrees_with_its_logarithm_and_never_rises(decay, epoch):
    assert decay.factor(epoch) == pytest.approx(math.exp(decay.log_factor(epoch)), rel=1e-12)
    assert decay.factor(epoch + 1) <= decay.factor(epoch) <= 1


def test_factors_are_the_papers():
    assert Decay("linear", 0.9).factor(2) == pytest.approx(1 / 2.8, rel=1e-15)
    assert Decay("exponential", 0.5).factor(2) == pytest.approx(math.exp(-1), rel=1e-15)


@pytest.mark.parametrize("kind", ["linear", "exponential"])
@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-300, 1e-17])
def test_tiny_rates_come_to_no_decay(kind, rate):
    assert Decay(kind, rate).factor(29) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(
    "kind, rate, word",
    [
        ("cosine", 0.1, "cosine"),
        ("linear", -0.1, "-0.1"),
        ("linear", math.nan, "nan"),
        ("exponential", math.inf, "inf"),
        ("none", 0.5, "none"),
    ],
)
def test_impossible_decays_are_refused(kind, rate, word):
    one_sentence(word, Decay, kind, rate)
