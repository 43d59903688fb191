"""docs/paper_epsilons.md: each row recomputed by sums in 60 digits, against the paper's table."""

import math
import re
from pathlib import Path

import mpmath
import pytest

from edp_mx.dp.accounting.zcdp import log_epsilon_simple
from experiments.paper_epsilons import page, rows
from experiments.tables.paper_point import log_rho_simple

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "paper_epsilons.md").read_text(encoding="utf-8")

# Table 1 as printed: log10 ε without decay, with linear, with exponential decay.
TABLE_1 = """
CLC ATIS 4.4 5.8 24.4
CLC SNIPS 3.1 6.5 17.4
CLC NLU-eval 2.0 2.7 22.1
CLC Health 3.6 4.0 4.3
CLC Comm. 6.2 7.5 19.1
CLC Video 4.8 5.9 19.5
BERT ATIS 5.9 6.3 11.1
BERT SNIPS 2.7 2.3 2.7
BERT NLU-eval 2.2 1.7 2.3
BERT Health 1.9 2.8 2.9
BERT Comm. 2.1 2.8 3.7
BERT Video 1.9 1.8 2.3
"""
SEARCHED = {  # the τ of the paper's section 4.2
    "none": {0.0},
    "linear": {0.02, 0.05, 0.07, 0.1, 0.3, 0.5, 0.7, 0.9},
    "exponential": {0.01, 0.02, 0.05, 0.08, 0.1, 0.2, 0.35, 0.5},
}
ROW = re.compile(
    r"\| (CLC|BERT), (\S+), (none|linear|exponential)( †)? +\| +([\d.]+) \| +([\d.e-]+) "
    r"\| +([\d.]*) \| +(\d+) \| +(\S+) \| +([\d.]+) \| +([\d.]+) \| +([\d.]+) \|"
)
ROWS = ROW.findall(PAGE)


def sum_of_inverse_squares(kind, rate, epochs):
    """Σ d(t)⁻², term by term."""
    rate = mpmath.mpf(rate or 0)
    terms = {
        "none": lambda t: mpmath.mpf(1),
        "linear": lambda t: (1 + rate * t) ** 2,
        "exponential": lambda t: mpmath.exp(2 * rate * t),
    }
    return mpmath.fsum(terms[kind](t) for t in range(epochs))


def exact_delta(epsilon, mu):
    """Balle and Wang (2018), Theorem 8, as it is written."""
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


def delta_of(epsilon, mu):
    """The same where e^ε Φ(…) would not be evaluated: by the scaled tail."""
    x = (mu / 2 + epsilon / mu) / mpmath.sqrt(2)
    if x < 1e4:
        return exact_delta(epsilon, mu)
    gap = (epsilon / mu - mu / 2) / mpmath.sqrt(2)
    tail = mpmath.exp(-(gap**2)) / (2 * x * mpmath.sqrt(mpmath.pi))  # erfc(x) e^{x²} ≈ 1/(x√π)
    return mpmath.erfc(gap) / 2 - tail


def test_all_36_of_the_paper_are_there_once():
    listed = {(m, c, k): p for m, c, k, _, p, *_ in ROWS}
    expected = {}
    for line in TABLE_1.split("\n"):
        if line:
            model, corpus, *numbers = line.split()
            expected.update({(model, corpus, k): n for k, n in zip(SEARCHED, numbers)})
    assert listed == expected
    assert len(ROWS) == len(expected) == 36


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_a_row_is_what_sums_say(row):
    model, corpus, kind, dagger, paper, z, rate, epochs, delta, published, holds, calibrated = row
    mpmath.mp.dps = 60
    assert 1e-6 <= float(z) <= 1
    assert float(rate or 0) in SEARCHED[kind]
    assert float(delta) == (5e-4 if corpus in ("ATIS", "SNIPS", "NLU-eval") else 5e-5)
    a, z = sum_of_inverse_squares(kind, rate, int(epochs)), mpmath.mpf(z)
    rho, log = a / (2 * z**2), -mpmath.log(mpmath.mpf(delta))

    said = mpmath.log10(rho + 2 * mpmath.sqrt(rho * log))
    assert abs(said - float(paper)) <= 0.1
    assert abs(said - float(published)) < 0.0051

    # ε that holds is where δ(ε) crosses δ; 8 workers and κ = 2 make μ √8 · 2 times larger
    for factor, printed in ((2 * mpmath.sqrt(8), holds), (1, calibrated)):
        mu = factor * mpmath.sqrt(2 * rho)
        below, above = (mpmath.mpf(10) ** (float(printed) + d) for d in (-0.0051, 0.0051))
        assert delta_of(below, mu) > mpmath.mpf(delta) > delta_of(above, mu)

    # † : the noise C z_T / N of a worker falls below 2^-19 C
    fall = {"none": 1, "linear": 1 + float(rate or 0) * (int(epochs) - 1)}
    fall["exponential"] = mpmath.exp(mpmath.mpf(rate or 0) * (int(epochs) - 1))
    assert bool(dagger) == (z / fall[kind] / 8 < mpmath.mpf(2) ** -19)


def test_the_page_is_what_the_script_makes():
    assert page(rows()) == PAGE


@pytest.mark.parametrize("delta", [1e-12, 5e-4, 0.5])
@pytest.mark.parametrize("log_rho", [-900.0, -40.0, -1.0, 0.0, 3.0, 40.0, 900.0, math.inf])
def test_rho_from_the_paper_s_epsilon_is_what_it_was(log_rho, delta):
    found = log_rho_simple(log_epsilon_simple(log_rho, delta), delta)
    assert found == pytest.approx(log_rho, rel=1e-12, abs=1e-12)


def test_rho_from_epsilon_by_the_quadratic_formula():
    target, epsilon = math.log(1 / 5e-4), 8.0
    root = -math.sqrt(target) + math.sqrt(target + epsilon)  # x² + 2 √L x = ε, with x = √ρ
    assert log_rho_simple(math.log(epsilon), 5e-4) == pytest.approx(2 * math.log(root), rel=1e-12)
