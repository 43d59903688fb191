"""Both ε of a plan, or of the releases in a ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, Sequence

from edp_mx.dp.accounting.accountants import ACCOUNTANTS, count_claimed
from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.coverage import (
    COARSE_GRID,
    GRID_STEPS,
    LARGEST_NOISE,
    NO_NOISE,
    RESOLUTION,
    UNKNOWN_SCALES,
    VANISHING_NOISE,
)
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.plan import Plan

PAPER = "zcdp_paper"
NOTHING_SAID = "Yu et al. (2019) say nothing where the sample rate times the noise is 1 or more"


def count_what_holds(plan: Plan, entries: Sequence[Entry]) -> Bound:
    """Return the ε that holds against whoever sees every aggregate, if the inputs are public.

    The entries are the releases of a ledger, or the planned ones.

    Guarantee: a bound for the worst pair of neighbours; exact for shuffled epochs. ∞, with its
    reason, where there is no noise, float32 cannot add all of it, or its α is not known yet.
    """
    reason = _no_noise(plan, entries)
    if reason:
        return unbounded(reason)
    return count_claimed(plan.composition(entries), delta=plan.delta)


def count_as_published(plan: Plan, entries: Sequence[Entry]) -> Bound:
    """Return ε as the paper counts it. NOT a bound.

    For Algorithm 1, and for DP-SGD on shuffled batches: each epoch once, with z_t as it is, κ = 1,
    and ρ + 2√(ρ ln 1/δ). For DP-SGD on sampled batches: `paper_rs`, the estimate of Yu et al.,
    from whom the paper takes its accounting; the paper itself prints no ε of DP-SGD.

    Source: eDP-SGD, section 4 and Table 1; Yu et al. (2019), Theorems 4 and 5.
    """
    given = [e for e in entries if e.noise_multiplier is not None and e.event.count]
    published = "" if plan.released.clips.is_mean else plan.released.draws.published
    if published:
        bound = ACCOUNTANTS[published].count(as_published(entries), delta=plan.delta)
        reason = NOTHING_SAID if all(entry.noise_multiplier for entry in given) else NO_NOISE
    else:
        events = _epochs(plan, given)
        bound = ACCOUNTANTS["rf_zcdp"].count(Composition("zero_out", events), delta=plan.delta)
        bound, reason = replace(bound, accountant=PAPER), NO_NOISE
    return replace(bound, reasons=(reason,)) if bound.epsilon.is_infinite else bound


def _epochs(plan: Plan, entries: Sequence[Entry]) -> Iterator[Event]:
    """An event for each time that an epoch was taken, in one or in several stretches of steps."""
    steps: Dict[str, int] = Counter()
    for entry in entries:
        before, after = steps[entry.what], steps[entry.what] + entry.event.count
        steps[entry.what] = after
        each = max(1, entry.event.draws.count(plan.steps_per_epoch))
        times = -(-after // each) - -(-before // each)
        yield Event("shuffle", entry.noise_multiplier or 0.0, times)


def say_paper(bound: Bound) -> str:
    """Return in words how `count_as_published` counted."""
    if bound.accountant == PAPER:
        return f"{PAPER}: epsilon = rho + 2 sqrt(rho ln 1/delta)"
    return ACCOUNTANTS[bound.accountant].said


def as_published(entries: Sequence[Entry]) -> Composition:
    """Return the events as if z_t were the effective multiplier, without α; no ε of them holds."""
    events = [
        replace(entry.event, effective_noise_multiplier=entry.noise_multiplier)
        for entry in entries
        if entry.noise_multiplier is not None
    ]
    return Composition("zero_out", events)


def least_noise_multiplier(plan: Plan) -> float:
    """Return the smallest z₀ with which float32 still resolves the noise of the last epoch.

    Hardened noise needs more, so that float32 holds the sums of all workers on its grid.
    """
    last = plan.with_noise_multiplier(1.0).noise_multiplier_at(max(plan.epochs - 1, 0))
    if last == 0:
        return float("inf")
    return _resolution(plan) / plan.released.relative_noise(last) * (1 + 1e-12)


def _resolution(plan: Plan) -> float:
    """The smallest noise of a worker, relative to the gradient that it is added to."""
    if plan.gaussian == "plain" or plan.release is None:
        return RESOLUTION
    return grid_resolution(plan.release.num_workers)


def grid_resolution(num_workers: int) -> float:
    """Return the smallest hardened noise of a worker, relative to what it is added to.

    All workers' sums together have at most as many steps of the grid as float32 holds:
    workers · (1 / it + `LARGEST_NOISE`) ≤ `GRID_STEPS`.
    """
    room = GRID_STEPS / num_workers - LARGEST_NOISE
    return 1 / room if room > 0 else float("inf")


def _no_noise(plan: Plan, entries: Sequence[Entry]) -> str:
    """The reason for which nothing hides a record, or nobody knows; empty if something does."""
    if plan.awaits_scales and any(entry.epoch is not None for entry in entries):
        return UNKNOWN_SCALES
    least = _resolution(plan)
    for entry in entries:
        z = entry.noise_multiplier
        if entry.event.count and entry.event.effective_noise_multiplier == 0:
            return NO_NOISE
        if entry.event.count and z is not None and plan.released.relative_noise(z) < least:
            return VANISHING_NOISE if plan.gaussian == "plain" else COARSE_GRID
    return ""
