"""Both ε of what a plan releases, or of what a ledger says was released."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence

from edp_mx.accounting.accountants import count_claimed, count_with, count_with_all, renamed
from edp_mx.accounting.bound import Bound, unbounded
from edp_mx.accounting.coverage import NO_NOISE, RESOLUTION, VANISHING_NOISE
from edp_mx.accounting.entries import Entry
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.plan import Plan

PAPER = "zcdp_paper"
NOTHING_SAID = "Yu et al. (2019) say nothing where the sample rate times the noise is 1 or more"


def count_what_holds(plan: Plan, entries: Sequence[Entry]) -> Bound:
    """ε that holds for whoever sees every aggregate, if the plan's inputs are public.

    Args:
        plan: of the run, with a mechanism.
        entries: what was released, as a ledger has it, or is planned to be.

    Raises:
        UserError: events of both samplers, which no accountant here composes.

    Guarantee: a bound for the worst pair of neighbours; exact for shuffled epochs. ∞, with its
    reason, where there is no noise or float32 cannot add all of it.
    """
    reason = _no_noise(plan, entries)
    if reason:
        return unbounded(reason)
    return count_claimed(plan.composition(entries), delta=plan.delta)


def counts_of_what_holds(plan: Plan, entries: Sequence[Entry]) -> List[Bound]:
    """The same by all accountants, those too that give no bound."""
    counts = count_with_all(plan.composition(entries), delta=plan.delta)
    if count_what_holds(plan, entries).reasons:
        return [replace(unbounded(), accountant=count.accountant) for count in counts]
    return counts


def count_as_published(plan: Plan, entries: Sequence[Entry]) -> Bound:
    """ε as it is published. NOT a bound.

    Algorithm 1, and DP-SGD on shuffled batches: each epoch once, with z_t as it is, κ = 1, and
    ρ + 2√(ρ ln 1/δ). DP-SGD on batches that are sampled: `paper_rs`, the count of Yu et al. for
    these, which the paper takes its accounting from; it prints no ε of DP-SGD itself.

    Source: eDP-SGD, section 4 and Table 1; Yu et al. (2019), Theorems 4 and 5.
    """
    assert plan.release is not None
    given = [e for e in entries if e.noise_multiplier is not None and e.event.count]
    if plan.release.sampler == "poisson" and plan.release.unit != "micro_batch":
        bound = count_with("paper_rs", as_published(entries), delta=plan.delta)
        has_none = any(entry.noise_multiplier == 0 for entry in given)
        return renamed(bound, "paper_rs", reasons=(NO_NOISE if has_none else NOTHING_SAID,))
    events = [Event("shuffle", entry.noise_multiplier or 0.0) for entry in given]
    bound = count_with("rf_zcdp", Composition("zero_out", events), delta=plan.delta)
    return renamed(bound, PAPER, reasons=(NO_NOISE,))


def counts_as_published(plan: Plan, entries: Sequence[Entry]) -> List[Bound]:
    """All accountants as if the noise were all that the multiplier says; NOT what holds."""
    return count_with_all(as_published(entries), delta=plan.delta)


def as_published(entries: Sequence[Entry]) -> Composition:
    """As if the noise were all that the multiplier says, and one record moved it by C.

    What α cost is left out, as the paper does.
    """
    events = [
        replace(entry.event, effective_noise_multiplier=entry.noise_multiplier)
        for entry in entries
        if entry.noise_multiplier is not None
    ]
    return Composition("zero_out", events)


def least_noise_multiplier(plan: Plan) -> float:
    """The smallest z₀ with which float32 still resolves the noise of the last epoch."""
    assert plan.release is not None
    last = plan.with_noise_multiplier(1.0).noise_multiplier_at(max(plan.epochs - 1, 0))
    if last == 0:
        return float("inf")
    return RESOLUTION / plan.release.relative_noise(last) * (1 + 1e-12)


def _no_noise(plan: Plan, entries: Sequence[Entry]) -> str:
    """Why nothing hides a record, if nothing does."""
    assert plan.release is not None
    for entry in entries:
        z = entry.noise_multiplier
        if entry.event.count == 0:
            continue
        if entry.event.effective_noise_multiplier == 0:
            return NO_NOISE
        if z is not None and plan.release.relative_noise(z) < RESOLUTION:
            return VANISHING_NOISE
    return ""
