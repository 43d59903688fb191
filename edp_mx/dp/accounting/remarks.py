"""The remarks beside ε: its conditions, warnings and limits."""

from __future__ import annotations

import math
from typing import List, Tuple

from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.coverage import (
    ALWAYS_OPEN,
    BEST_CHECKPOINT,
    BROUGHT,
    EARLY_STOP,
    FLOATING_POINT,
    GRID,
    PRIVATE_INPUTS,
)
from edp_mx.dp.accounting.plan import Plan

SMALL_LAST_NOISE = 10.0  # z₀ / z_{T−1} above which to warn
FEW = 300  # records, below which to warn
SMALL_DELTA = 1e-6  # of any n


def conditions_of(plan: Plan) -> Tuple[str, ...]:
    """Return the conditions of a finite ε, and whether the user declares that they hold."""
    said = " (privacy.assume_public says so)"
    return tuple(
        PRIVATE_INPUTS[name].condition + (said if name in plan.assumed_public else "")
        for name in plan.private_inputs
    )


def warnings_of(plan: Plan) -> Tuple[str, ...]:
    """Return warnings: settings that deserve a second look."""
    if plan.release is None:
        return ()
    found = []
    fall = -plan.decay.log_factor(max(plan.epochs - 1, 0))
    if fall > math.log(SMALL_LAST_NOISE):
        found.append(
            f"the noise of the last epoch is 10^{fall / math.log(10):.1f} times smaller than that "
            "of the first, so nearly all of epsilon is spent at the end"
        )
    n, delta = plan.num_records, plan.delta
    if n and delta * n >= 1:
        found.append(f"delta is not below 1/n: it permits publishing one {plan.record} outright")
    if n and n < FEW:
        found.append(
            f"only {n} {plan.record}s: noise that hides one of them hides much of what they teach"
            + "; and delta is the probability with which the guarantee may fail for each of them: "
            "for so few, a fixed small one is better (privacy.delta: 1e-6)" * (delta > SMALL_DELTA)
        )
    return tuple(found)


def not_covered_by(plan: Plan) -> Tuple[str, ...]:
    """Return the limits that are stated beside every ε; docs/privacy.md, section 6."""
    texts: List[str] = [BEST_CHECKPOINT] if plan.chooses_checkpoint else []
    if plan.stops_early:
        texts.append(EARLY_STOP)
    if plan.release is not None:
        if plan.release.num_workers > 1:
            single = plan.release.worker_noise_multiplier(plan.noise_multiplier)
            there = f"only {single:.4g}" if not plan.awaits_scales else "not known yet,"
            texts.append(
                "someone who sees the messages of a single worker: there the effective noise "
                f"multiplier is {there} in the first epoch"
            )
        texts.append(plan.release.clips.not_covered)
        texts += CLIPPINGS[plan.clipping].not_covered
    if plan.declarations is None:
        texts.append(BROUGHT)
    else:
        texts += [declaration.said for declaration in plan.declarations if declaration.is_open]
    return (*texts, *ALWAYS_OPEN, FLOATING_POINT if plan.gaussian == "plain" else GRID)
