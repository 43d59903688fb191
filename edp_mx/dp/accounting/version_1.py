"""The plan in the head of a ledger that edp_mx 0.1 wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Mapping, Optional

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.delta import choose_delta
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.errors import UserError
from edp_mx.runtime.structured import NotOfKind, structure


@dataclass(frozen=True)
class Facts:
    """The head of a 0.1 ledger, every field of which it has."""

    mechanism: str
    release: Release
    noise_multiplier: float
    decay: Decay
    epochs: int
    steps: int
    num_examples: int
    delta: Optional[float]
    delta_mode: str
    corpus_is_public: bool
    sampler: str
    scales_source: str
    vocabulary_is_public: bool
    seed_is_fixed: bool
    best_checkpoint_on_validation: bool
    stops_early: bool
    uses_lengths: bool


def plan_of_version_1(values: Mapping[str, Any]) -> Plan:
    """Return the plan that the facts in the head of a 0.1 ledger describe.

    Their α is a placeholder of ones; `dp_release` has its multiplier on its own line only.
    """
    try:
        facts = structure(values, Facts)
    except NotOfKind as error:
        raise UserError(f"the head of the ledger is of another version ({error})") from error
    plan = _plan(facts)
    assert plan.release is not None
    if (facts.mechanism, facts.sampler) != (plan.mechanism, plan.release.sampler):
        raise UserError(
            f"mechanism {facts.mechanism} and sampler {facts.sampler} are not those of the "
            f"release, which is of {plan.mechanism} and {plan.release.sampler}"
        )
    return plan


def _plan(facts: Facts) -> Plan:
    """The plan, its fields under their present names."""
    private = {
        "layer_scales": facts.scales_source == "first_batch",
        "vocabulary": not facts.vocabulary_is_public,
        "lengths": facts.uses_lengths,
    }
    delta = choose_delta(
        num_examples=facts.num_examples,
        delta=facts.delta,
        delta_mode=facts.delta_mode,
        corpus_is_public=facts.corpus_is_public,
    )
    return Plan(
        release=_release(facts),
        noise_multiplier=facts.noise_multiplier,
        decay=facts.decay,
        epochs=facts.epochs,
        steps_per_epoch=facts.steps // facts.epochs if facts.epochs else 0,
        num_records=facts.num_examples,
        delta=delta,
        delta_mode=facts.delta_mode if facts.delta is None else "value",
        scales_source=facts.scales_source,
        private_inputs=tuple(name for name, is_there in private.items() if is_there),
        # Perhaps the loop: it was not recorded.
        clipping="ghost" if facts.mechanism == "dp_sgd" else "loop",
        seed_is_fixed=facts.seed_is_fixed,
        chooses_checkpoint=facts.best_checkpoint_on_validation,
        stops_early=facts.stops_early,
    )


def _release(facts: Facts) -> Release:
    """One step; q was not written down and follows from the sizes."""
    release = replace(facts.release, layer_scales=None)
    if release.sampler == "poisson":
        rate = min(round(release.batch_size) / facts.num_examples, 1.0)
        release = replace(release, sample_rate=rate)
    return release
