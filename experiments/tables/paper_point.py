"""Where the paper's runs stood: noise and decay with which its own count gives its own ε."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional

import numpy as np

from edp_mx.data.config import PUBLIC_CORPORA
from edp_mx.dp.accounting.choices import PAPER_INTERNAL, PAPER_PUBLIC, check_delta
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.lognumber import log_of
from edp_mx.dp.accounting.zcdp import log_rho_of
from experiments.tables.paper import DECAY_RATES, TABLE_1

SMALLEST, LARGEST = 1e-6, 1.0  # the z₀ that the paper searched
TOLERANCE = 0.1  # on log₁₀ ε: the digits that the paper prints


class Point(NamedTuple):
    """The noise of the first epoch, z₀, and how it falls."""

    noise_multiplier: float
    decay: Decay


def delta_of(corpus: str) -> float:
    """Return the paper's δ for a corpus."""
    return PAPER_PUBLIC if corpus in PUBLIC_CORPORA else PAPER_INTERNAL


def log10_epsilon_of(family: str, corpus: str, decay: str) -> Optional[float]:
    """Return log₁₀ ε as the paper prints it; None where its table has no such row."""
    row = TABLE_1.get(family, {}).get(corpus)
    return None if row is None else row.changes[decay].log10_epsilon


def paper_point(family: str, corpus: str, decay: str, *, epochs: int) -> Optional[Point]:
    """Return settings that have a row's ε by the paper's count; None where there is no such row.

    The paper names neither z₀ nor τ, only its search ranges. Each τ needs its own z₀. Of the pairs
    whose z₀ lies in the paper's range, the one is taken whose z₀ is nearest to that without decay.
    With few epochs there may be none; then the one nearest to the range is taken.
    """
    wanted = log10_epsilon_of(family, corpus, decay)
    constant = log10_epsilon_of(family, corpus, "none")
    if wanted is None or constant is None:
        return None
    plain = noise_multiplier_for(constant, Decay(), corpus=corpus, epochs=epochs)
    decays = [Decay(decay, rate) for rate in DECAY_RATES[decay]]
    points = [Point(noise_multiplier_for(wanted, each, corpus=corpus, epochs=epochs), each)
              for each in decays]  # fmt: skip
    return min(points, key=lambda point: _distances(point.noise_multiplier, plain))


def _distances(z: float, plain: float) -> List[float]:
    """How far z₀ lies outside of the range searched, and then from that without decay, in logs."""
    outside = max(math.log(z / LARGEST), math.log(SMALLEST / z), 0.0)
    return [outside, abs(math.log(z / plain))]


def log_rho_simple(log_epsilon: float, delta: float) -> float:
    """Return log ρ of what has this log ε by `log_epsilon_simple`, its inverse.

    √ρ = √(ε + ln 1/δ) − √(ln 1/δ) = ε / (√(ε + ln 1/δ) + √(ln 1/δ)), whose second form loses no
    digits.
    """
    check_delta(delta)
    target = log_of(-math.log(delta))
    divisor = np.logaddexp(0.5 * float(np.logaddexp(log_epsilon, target)), 0.5 * target)
    return 2 * (log_epsilon - float(divisor)) if log_epsilon < math.inf else math.inf


def noise_multiplier_for(log10_epsilon: float, decay: Decay, *, corpus: str, epochs: int) -> float:
    """Return z₀, to three digits, with which the paper would count this ε over some epochs.

    z₀² = Σ d(t)⁻² / (2 ρ).

    Source: eDP-SGD, section 4; docs/privacy.md, section 4.
    """
    log_rho = log_rho_simple(log10_epsilon * math.log(10), delta_of(corpus))
    planned = log_rho_of(Event("shuffle", decay.factor(t)) for t in range(epochs))  # at z₀ = 1
    log_z = 0.5 * (planned - log_rho)
    return float(f"{math.exp(log_z):.3g}")
