"""What would make a run's guarantee better, with what it would come to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict, List, Sequence, Tuple

from edp_mx.accounting.bound import count_released
from edp_mx.accounting.coverage import VANISHING_NOISE
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.ledger_guarantee import LedgerAccount
from edp_mx.accounting.ledger_plan import SCALES
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.accounting.plan import Plan
from edp_mx.errors import UserError

TARGETS = (8.0, 1.0)  # epsilons that a reader may have heard of
WORTH_SAMPLING = math.log(1e3)  # above this log ε sampling hardly amplifies anything

# (a fact, its value that alone makes ε infinite, what to do)
REMEDIES: Tuple[Tuple[str, Any, str], ...] = (
    (
        "scales_source",
        "first_batch",
        "take the layer scales from elsewhere: privacy.layer_scales ones, sqrt_dim and "
        "public_batch cost nothing, dp_release a little",
    ),
    (
        "vocabulary_is_public",
        False,
        "bring a public vocabulary and label list: data.vocabulary and data.labels, source file",
    ),
    ("uses_lengths", True, "make batches at random: training.length_buckets 0"),
    ("seed_is_fixed", True, "leave out privacy.insecure_fixed_seed, which is for tests only"),
)


def improvements(account: LedgerAccount) -> List[str]:
    """One sentence each; what makes ε finite first.

    What a change would come to is counted for the whole plan, with all else left as it is.
    """
    facts, delta = account.ledger.facts, account.spent.delta
    found = [remedy for key, value, remedy in REMEDIES if facts.get(key) == value]
    if VANISHING_NOISE in account.spent.holds.reasons:
        found.append("keep the noise above what float32 can add: a slower decay, or more of it")
    mended = ", once that is mended" if found else ""
    plan, z = Plan.from_facts(facts), facts["noise_multiplier"]
    scales = [entry.event for entry in account.ledger.entries if entry.what == SCALES][:1]
    now = _epsilon(plan, z, scales, delta)
    for what, other in _variations(plan, facts["num_examples"], now).items():
        epsilon = _epsilon(other, z, scales, delta)
        if epsilon.log < now.log - 1e-6:
            found.append(f"{what}: epsilon {epsilon} instead of {now}{mended}")
    found += _more_noise(plan, z, now, delta, has_scales=bool(scales))
    found.append(
        "more workers, or a larger batch in more micro-batches, bear the same noise multiplier at "
        "less cost in accuracy: the noise on the mean falls as their number grows"
    )
    return found


def _variations(plan: Plan, num_examples: int, now: LogNumber) -> Dict[str, Plan]:
    """The plan with one thing changed."""
    release, found = plan.release, {}
    if release.variant == "published":
        found["the calibrated variant with the same z0 (privacy.variant: calibrated)"] = replace(
            plan, release=replace(release, variant="calibrated")
        )
    if plan.decay != Decay() and plan.epochs > 1:
        found["no decay of the noise"] = replace(plan, decay=Decay())
    if plan.epochs > 1:
        half = plan.epochs // 2
        found[f"{half} of the {plan.epochs} epochs"] = replace(plan, epochs=half)
    if not plan.is_poisson and now.log < WORTH_SAMPLING:
        batch_size = release.num_workers * release.micro_batch_size
        found["Poisson sampling of the batches, in secret (privacy.sampler: poisson)"] = replace(
            plan,
            release=replace(release, sampler="poisson"),
            sample_rate=min(batch_size / num_examples, 1.0),
            steps_per_epoch=max(1, round(num_examples / batch_size)),
        )
    return found


def _epsilon(plan: Plan, z: float, scales: Sequence[Event], delta: float) -> LogNumber:
    """ε of a plan, with what α costs."""
    steps = plan.composition(z)
    scales = [replace(event, sampler=plan.release.sampler) for event in scales]
    composition = Composition(steps.neighbours, [*scales, *steps.events])
    return count_released(composition, delta=delta).epsilon


def _more_noise(
    plan: Plan, z: float, now: LogNumber, delta: float, *, has_scales: bool
) -> List[str]:
    """z₀ for ε that others speak of; for Poisson one only, which takes seconds."""
    found = []
    wanted = [target for target in TARGETS if now.log > math.log(target)]
    for target in wanted[:1] if plan.is_poisson else wanted:
        try:
            more, _ = plan.calibrate(target_epsilon=target, delta=delta)
        except UserError:
            continue
        times = f", {more / z:.3g} times as much" if z > 0 else ""
        alone = " for the steps, the layer scales come on top" if has_scales else ""
        found.append(f"more noise: epsilon {target:g} takes z0 = {more:.4g}{times}{alone}")
    return found
