"""Decays against sums over epochs, and at the ends of the number range."""

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
def test_the_sum_over_epochs_is_the_closed_form(decay, epochs):
    if epochs == 0:
        expected = -math.inf
    elif decay.kind == "exponential" and decay.rate > 1e-6:
        expected = log_expm1(2 * decay.rate * epochs) - log_expm1(2 * decay.rate)
    else:  # Σ (1 + τt)²; without decay, and for next to none, T
        pairs, tau = epochs * (epochs - 1), decay.rate * (decay.kind == "linear")
        expected = math.log(epochs + tau * pairs + tau**2 * pairs * (2 * epochs - 1) / 6)
    found = decay.log_inverse_square_sum(epochs)
    assert found == pytest.approx(expected, rel=1e-9, abs=2e-4 if 0 < decay.rate <= 1e-6 else 1e-9)


def log_expm1(x):
    return x + math.log(-math.expm1(-x))


@given(DECAYS, st.integers(0, 60))
def test_factor_agrees_with_its_logarithm_and_never_rises(decay, epoch):
    assert decay.factor(epoch) == pytest.approx(math.exp(decay.log_factor(epoch)), rel=1e-12)
    assert decay.factor(epoch + 1) <= decay.factor(epoch) <= 1
    assert decay.noise_multiplier_at(3.0, epoch) == 3.0 * decay.factor(epoch)


def test_factors_are_the_papers():
    assert Decay("linear", 0.9).factor(2) == pytest.approx(1 / 2.8, rel=1e-15)
    assert Decay("exponential", 0.5).factor(2) == pytest.approx(math.exp(-1), rel=1e-15)


@pytest.mark.parametrize("kind", ["linear", "exponential"])
@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-300, 1e-17])
def test_tiny_rates_come_to_no_decay(kind, rate):
    assert Decay(kind, rate).log_inverse_square_sum(30) == pytest.approx(math.log(30), rel=1e-14)


def test_small_rate_is_accurate():
    # Σ e^(2τt) = T + τ T (T − 1) + O(τ²): a naive (e^(2τT) − 1) / (e^(2τ) − 1) loses 6 digits here
    growth = Decay("exponential", 1e-9).log_inverse_square_sum(10) - math.log(10)
    assert growth == pytest.approx(9e-9, rel=1e-6)


@pytest.mark.parametrize("rate, epochs", [(0.5, 1000), (7.1, 50), (100.0, 10_000)])
def test_exponential_does_not_overflow(rate, epochs):
    # the last epoch dominates: log A → 2τ(T − 1) − log(1 − e^(−2τ))
    expected = 2 * rate * (epochs - 1) - math.log(-math.expm1(-2 * rate))
    assert Decay("exponential", rate).log_inverse_square_sum(epochs) == pytest.approx(expected)


def test_linear_does_not_overflow():
    found = Decay("linear", 1e200).log_inverse_square_sum(3)
    assert found == pytest.approx(math.log(5) + 400 * math.log(10), rel=1e-12)


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
