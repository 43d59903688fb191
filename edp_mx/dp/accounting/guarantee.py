"""The full privacy statement of a run: both ε, their conditions, and their limits."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Dict, List, Optional, Sequence, Tuple

from edp_mx.dp.accounting.accountants import count_with_all
from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.budget import committed_entries
from edp_mx.dp.accounting.counting import as_published, count_as_published, count_what_holds
from edp_mx.dp.accounting.coverage import (
    FIXED_SEED,
    NO_MECHANISM,
    OTHER_MODELS,
    PRIVATE_INPUTS,
    SEVERAL_UTTERANCES,
    USER_NAMES,
)
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.remarks import (
    FEW,
    SMALL_DELTA,
    conditions_of,
    not_covered_by,
    warnings_of,
)
from edp_mx.runtime.console_text import count_of

_OF_A_STEP = (
    *("adjacency", "kappa", "sampler", "num_workers", "micro_batches_per_worker"),
    *("micro_batch_size", "max_grad_norm"),
)
FOREMOST = (SEVERAL_UTTERANCES, USER_NAMES, OTHER_MODELS)  # of what is not covered
WELL_BELOW = 0.1  # of 1/n: a δ by which a guarantee may be judged; docs/privacy.md, section 7

_wrapped = partial(textwrap.wrap, width=80, initial_indent="  ", subsequent_indent="    ")


@dataclass(frozen=True)
class Guarantee:
    """The privacy statement about a plan and the releases under it; built by `guarantee`.

    Attributes:
        entries: the counted releases: all that were made, or might have been.
        as_published: ε as the paper counts it.
        holds: ε that holds for the run; ∞ with its reasons.
        holds_if: ε under the conditions that it names; equal to `holds` where there are none.
        not_covered: leaks that no ε here covers.
    """

    plan: Plan
    entries: Tuple[Entry, ...]
    as_published: Bound
    holds: Bound
    holds_if: Bound
    warnings: Tuple[str, ...]
    not_covered: Tuple[str, ...]

    @property
    def release(self) -> Release:
        """One step as it is released; only of a run with a mechanism."""
        return self.plan.released

    @property
    def strict_delta(self) -> float:
        """The δ by which it may be judged: 1/(10 n), of few records 1e-6, or a smaller own one."""
        n, delta = self.plan.num_records, self.plan.delta
        if not n:
            return delta
        return min(delta, SMALL_DELTA if n < FEW else WELL_BELOW / n)

    def at_other_deltas(self) -> Tuple[Guarantee, ...]:
        """Return it for the same releases at 1/(10 n) and at 1e-6.

        Edge cases: none where ε is infinite at each δ; no δ that is not below 1/n, or its own.
        """
        plan, n = self.plan, self.plan.num_records
        if self.holds_if.reasons:
            return ()
        deltas = [WELL_BELOW / n] if n else []
        if SMALL_DELTA * (n or 1) < 1 and SMALL_DELTA not in deltas:
            deltas.append(SMALL_DELTA)
        return tuple(
            _stated(replace(plan, delta=delta, delta_mode="value"), self.entries)
            for delta in deltas
            if delta != plan.delta
        )

    @property
    def effective_noise_multipliers(self) -> Tuple[float, ...]:
        """z_eff per epoch; empty without a mechanism, or while its α is not known."""
        if self.plan.release is None or self.plan.awaits_scales:
            return ()
        return tuple(map(self.plan.effective_noise_multiplier_at, range(self.plan.epochs)))

    @cached_property
    def by_accountant(self) -> Dict[str, List[Bound]]:
        """ε by all accountants: as published, that holds, and on conditions if it has any."""
        delta = self.plan.delta
        counts = count_with_all(self.plan.composition(self.entries), delta=delta)
        none = [replace(unbounded(), accountant=count.accountant) for count in counts]
        found = {
            "as_published": count_with_all(as_published(self.entries), delta=delta),
            "holds": none if self.holds.reasons else counts,
        }
        return {**found, "holds_if": counts} if self.holds_if.conditions else found

    @property
    def declarations(self) -> List[str]:
        """The inputs that reach the model without noise, and who declared them public."""
        return [str(declaration) for declaration in self.plan.declarations or ()]

    def to_dict(self) -> Dict[str, Any]:
        """Return strict JSON for `privacy.json`; ∞ and overflow are null beside log10, reason."""
        plan, release = self.plan, self.plan.release
        scales = release and release.layer_scales
        return {
            "unit": f"one {plan.record}",
            "mechanism": plan.mechanism,
            **{name: release and getattr(release, name) for name in _OF_A_STEP},
            "layer_scales": scales and list(scales),
            "scales_source": release and plan.scales_source,
            "scales_unit": release and plan.scales_unit,
            "variant": release and release.variant,
            "clips": release and release.unit,
            "gaussian": release and plan.gaussian,
            "noise_multiplier": release and plan.noise_multiplier,
            "decay": release and {"kind": plan.decay.kind, "rate": plan.decay.rate},
            "effective_noise_multiplier": list(self.effective_noise_multipliers),
            "epochs": plan.epochs,
            "steps": plan.steps,
            "num_examples": plan.num_records,
            "delta": plan.delta,
            "delta_mode": plan.delta_mode,
            "one_over_n": plan.num_records and 1 / plan.num_records,
            "max_epsilon": plan.max_epsilon,
            "assumed_public": list(plan.assumed_public),
            "declarations": self.declarations,
            **self.bounds_as_json(),
            "warnings": list(self.warnings),
            "not_covered": list(self.not_covered),
        }

    def bounds_as_json(self) -> Dict[str, Any]:
        """Return strict JSON of all three ε."""
        return {k: getattr(self, k).to_dict() for k in ("as_published", "holds", "holds_if")}

    def describe(self) -> str:
        """Return plain lines for the console."""
        plan = self.plan
        beside = f"; 1/n = {1 / plan.num_records:.3g}" if plan.num_records else ""
        lines = [
            f"Privacy of one {plan.record}, delta = {plan.delta:.3g} ({plan.delta_mode}{beside})",
            f"  epsilon as published  {_say(self.as_published)}",
            f"  epsilon that holds    {_say(self.holds)}",
        ]
        if self.holds_if.conditions:
            lines.append(f"  epsilon that holds if {_say(self.holds_if)}")
            lines += [f"    if {condition}" for condition in self.holds_if.conditions]
        lines += [f"  released: {self.say_release()}"] * (plan.release is not None)
        effective = self.effective_noise_multipliers
        if effective:
            lines.append(
                f"  noise multiplier {plan.noise_multiplier:g}, effective {effective[0]:.4g} "
                f"(epoch 1) to {effective[-1]:.4g} (epoch {plan.epochs})"
            )
        for said in self.declarations:
            lines += _wrapped(f"without noise: {said}", break_on_hyphens=False)
        lines += [f"  note: {warning}" for warning in self.warnings]
        lines += self._describe_open()
        return "\n".join(lines)

    def _describe_open(self) -> List[str]:
        """Name the limits of ε in short; nothing where there is no finite ε."""
        if self.holds_if.reasons:
            return []
        said = [text.split(":")[0] for text in self.not_covered if text in FOREMOST]
        more = len(self.not_covered) - len(said)
        text = f"not covered: {'; '.join(said)}; and {more} more, which `edp-mx explain RUN` lists"
        return _wrapped(text, break_on_hyphens=False)

    def say_release(self) -> str:
        """Return what is released, in one line; "" without a mechanism."""
        plan, release = self.plan, self.plan.release
        if release is None:
            return ""
        each = release.micro_batches_per_worker
        workers = count_of(release.num_workers, "worker")
        batches = f"{workers} x " + f"{each} micro-batches x " * (each > 1)
        return (
            f"{release.clips.clipped}{release.variant}, {release.adjacency}, kappa "
            f"{release.kappa:g}, {batches}{release.micro_batch_size:g}, scales "
            f"{plan.scales_source}, sampler {release.sampler}, {count_of(plan.steps, 'step')}, "
            f"{plan.gaussian} noise"
        )


def guarantee(
    plan: Plan,
    entries: Optional[Sequence[Entry]] = None,
    *,
    delta: Optional[float] = None,
    is_stopped: bool = False,
) -> Guarantee:
    """Count the ε of a run, both ways, and state its limits.

    Args:
        entries: of its ledger; by default all that are planned.
        delta: at which to count; left out, the plan's own.
        is_stopped: the program ended the run because of its results.

    Guarantee: `holds` holds against someone who sees every aggregate and when the run stops;
    `holds_if` does so under the conditions that it names. A run that was stopped or may stop early
    counts all that it might have released (`committed_entries`): `max_epsilon` would have ended it
    at its own δ, whichever is asked.
    """
    own, plan = plan, plan if delta is None else plan.with_delta(delta)
    if plan.release is None:
        return _stated(plan, ())
    released = plan.entries() if entries is None else tuple(entries)
    if plan.stops_early or is_stopped:
        released = committed_entries(own, released)
    return _stated(plan, released)


def _stated(plan: Plan, released: Tuple[Entry, ...]) -> Guarantee:
    """Count the releases that were made, or might have been."""
    published = holds = holds_if = unbounded(NO_MECHANISM)
    if plan.release is not None:
        published, holds_if = _count(plan, released)
        if plan.seed_is_fixed:
            holds_if = unbounded(FIXED_SEED, *holds_if.reasons)
        if not holds_if.reasons:
            holds_if = replace(holds_if, conditions=conditions_of(plan))
        reasons = [PRIVATE_INPUTS[name].reason for name in plan.private_inputs]
        holds = unbounded(*holds_if.reasons, *reasons) if reasons else holds_if
    return Guarantee(
        plan, released, published, holds, holds_if, warnings_of(plan), not_covered_by(plan)
    )


@lru_cache(maxsize=8)
def _count(plan: Plan, released: Tuple[Entry, ...]) -> Tuple[Bound, Bound]:
    """Both ε, remembered: at the end of a run its files, its page and the console ask for them."""
    return count_as_published(plan, released), count_what_holds(plan, released)


def _say(bound: Bound) -> str:
    if bound.reasons:
        return f"infinite: {'; '.join(bound.reasons)}"
    how = "" if bound.rho is None else " conversion"
    return f"{bound.epsilon.in_words()} ({bound.accountant}, {bound.conversion}{how})"
