"""Suggestions that would improve the guarantee of a run, with the ε of each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict, List

from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.coverage import FIXED_SEED_REMEDY, PRIVATE_INPUTS, VANISHING_NOISE
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.ledger_account import LedgerAccount
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.dp.accounting.target import calibrated
from edp_mx.errors import UserError

TARGETS = (8.0, 1.0)  # common values of ε
WORTH_SAMPLING = math.log(1e3)  # log ε above which sampling hardly amplifies


def improvements(account: LedgerAccount) -> List[str]:
    """Return one sentence per suggestion; suggestions that make ε finite come first.

    The ε of a change is for the whole plan with everything else unchanged.
    """
    plan = account.plan
    found = [PRIVATE_INPUTS[name].remedy for name in plan.private_inputs]
    if plan.seed_is_fixed:
        found.append(FIXED_SEED_REMEDY)
    if VANISHING_NOISE in account.spent.holds.reasons:
        found.append("keep the noise above what float32 can add: a slower decay, or more of it")
    mended = ", once that is done" if found else ""
    now = _epsilon(plan)
    for what, other in _variations(plan, now).items():
        epsilon = _epsilon(other)
        if epsilon.log < now.log - 1e-6:
            found.append(f"{what}: epsilon {epsilon} instead of {now}{mended}")
    found += _more_noise(plan, now)
    larger, grows = "a larger batch makes", "it grows"
    if plan.released.clips.is_mean:
        larger = "more workers, or a larger batch in more micro-batches, make"
        grows = "their number grows"
    found.append(
        f"{larger} the same noise multiplier cost less accuracy: the noise on the mean falls as "
        f"{grows}"
    )
    return found


def _variations(plan: Plan, now: LogNumber) -> Dict[str, Plan]:
    """Return plans with one change each, by a description of the change."""
    release, found = plan.released, {}
    if release.variant == "published":
        found["the calibrated variant with the same z0 (privacy.variant: calibrated)"] = replace(
            plan, release=replace(release, variant="calibrated")
        )
    if plan.decay != Decay() and plan.epochs > 1:
        found["no decay of the noise"] = replace(plan, decay=Decay())
    if plan.epochs > 1:
        half = plan.epochs // 2
        found[f"{half} of the {plan.epochs} epochs"] = replace(plan, epochs=half)
    fits = release.batch_size <= (plan.num_records or 0)
    if not release.draws.by_chance and now.log < WORTH_SAMPLING and fits:
        _, rate, steps = SAMPLERS["poisson"].divided(
            round(release.batch_size), 1, plan.num_records, None
        )
        found["Poisson sampling of the batches, in secret (privacy.sampler: poisson)"] = replace(
            plan,
            release=replace(release, sampler="poisson", sample_rate=rate),
            steps_per_epoch=steps,
        )
    return found


def _epsilon(plan: Plan) -> LogNumber:
    """Return the ε of a whole plan, with the cost of α."""
    return count_what_holds(plan, plan.entries()).epsilon


def _more_noise(plan: Plan, now: LogNumber) -> List[str]:
    """Return z₀ for common values of ε; one only for Poisson steps, where it takes seconds."""
    found = []
    wanted = [target for target in TARGETS if now.log > math.log(target)]
    for target in wanted[:1] if plan.released.draws.by_chance else wanted:
        try:
            more = calibrated(plan, target_epsilon=target).noise_multiplier
        except UserError:
            continue
        z = plan.noise_multiplier
        times = f", {more / z:.3g} times as much" if z > 0 else ""
        found.append(f"more noise: epsilon {target:g} needs z0 = {more:.4g}{times}")
    return found
