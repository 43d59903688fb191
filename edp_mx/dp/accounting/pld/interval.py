"""ε of Poisson-sampled steps from the distribution of their privacy loss, from above and below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional, Tuple

from edp_mx.dp.accounting.choices import check_delta
from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.pld.pairs import DIRECTIONS
from edp_mx.dp.accounting.pld.refine import DirectedBounds
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_rho_of

SMALLEST_MULTIPLIER = 1e-7  # below it sampling is ignored


@dataclass(frozen=True)
class Interval:
    """ε with bounds: no smaller one than `lower` holds; `upper`, the one to claim, does.

    `estimate` lies between them, where their errors of second order cancel.
    """

    lower: float
    estimate: float
    upper: float


def epsilon_poisson_pld(composition: Composition, *, delta: float) -> Interval:
    """Return ε of Poisson steps at δ, as an interval that contains the exact one.

    Upper: outcomes are cut into cells. Each cell is replaced by its two ends, and these by the
    lattice points around them, keeping the sums of P and Q, so that the resulting pair dominates;
    all mass outside counts as lost. Lower: the power and level of one test of the outcomes, "the
    sum of rounded losses is above t", for the best t. The error of both is of second order in the
    size of the cells, that of upper twice as large.

    Raises:
        UserError: shuffled epochs, or an impossible δ.

    Guarantee: `upper` holds, up to the rounding of doubles, for which a bound is added (of FFT;
        not of the exponential function). For zero-out it is the larger of add and of remove.

    Edge cases: no steps, or none that draws a record, give 0, z = 0 gives ∞, q = 1 alone is
        exact. Never above the ε without sampling, which is returned for z < 1e-7 (with `lower` 0).
        With more than 64 distinct multipliers of one rate `upper` loses some 1e-4, `lower` a few
        per cent (both a few per cent for single records replaced). The interval is wide for
        multipliers below 1e-3, where sums of losses have more than one scale, and where records are
        almost never drawn (q ≤ 1e-6, z ≤ 0.6, δ ≤ 1e-7): there by 1 %, at δ = 1e-9 by up to half of
        ε, since a double has too few digits beside the mass of no draw.

    Source: Gopi, Lee and Wutschitz (2021) (interval); Doroshenko et al. (2022) (connect the dots);
        Koskela, Jälkö and Honkela (2020) (FFT and its wrap-around); Alghamdi et al. (2023) (tilt).
    """
    worst, upper = _worst(composition, delta)
    if worst is None:
        is_exact = upper == math.inf or _smallest(composition) >= SMALLEST_MULTIPLIER
        return Interval(upper if is_exact else 0.0, upper, upper)
    lower = min(worst.lower(), upper)
    return Interval(lower, (upper + 2 * lower) / 3 if worst.is_exact else upper, upper)


def upper_epsilon_poisson_pld(composition: Composition, *, delta: float) -> float:
    """Return `upper` of `epsilon_poisson_pld` alone, in half of the time."""
    return _worst(composition, delta)[1]


def _worst(composition: Composition, delta: float) -> Tuple[Optional[DirectedBounds], float]:
    """The direction with the largest upper bound (None if a closed form decides), and the bound."""
    check_delta(delta)
    drawn = [event for event in composition.only("poisson") if event.sample_rate > 0]
    composition, events = Composition(composition.neighbours, drawn), tuple(drawn)
    unsampled = _without_sampling(composition, delta)
    is_plain = all(event.sample_rate == 1 for event in events)
    if is_plain or unsampled in (0.0, math.inf) or _smallest(composition) < SMALLEST_MULTIPLIER:
        return None, unsampled
    if _total_variation(composition) <= delta:
        return None, 0.0
    found = [DirectedBounds(name, events, delta) for name in DIRECTIONS[composition.neighbours]]
    while True:  # until the worst of the directions cannot be bounded better
        worst = max(found, key=lambda bounds: bounds.upper)
        if not worst.refine():
            return worst, min(worst.upper, unsampled)


def _smallest(composition: Composition) -> float:
    """The smallest multiplier of a sampled step; ∞ without one."""
    return min(
        (e.effective_noise_multiplier for e in composition.events if e.sample_rate < 1),
        default=math.inf,
    )


def _total_variation(composition: Composition) -> float:
    """A bound on δ at ε = 0: Σ q (Φ(μ/2) − Φ(−μ/2)), since such distances add up at most."""
    far = 2 if composition.neighbours == "replace_one" else 1  # twice as far apart
    return sum(
        e.count * e.sample_rate * math.erf(far / e.effective_noise_multiplier / math.sqrt(8))
        for e in composition.events
    )


def _without_sampling(composition: Composition, delta: float) -> float:
    """ε if every record were in every step: one Gaussian."""
    log = log_rho_of(composition.events)
    if composition.neighbours == "replace_one":
        log += math.log(4)  # twice as far apart
    return exp_of(log_epsilon_exact(log, delta))
