"""The plan in the head of a ledger that edp_mx 0.1 wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.delta import choose_delta
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError

FACTS = {
    "mechanism", "release", "noise_multiplier", "decay", "epochs", "steps", "num_examples", "delta",
    "delta_mode", "corpus_is_public", "sampler", "scales_source", "vocabulary_is_public",
    "seed_is_fixed", "best_checkpoint_on_validation", "stops_early", "uses_lengths",
}  # fmt: skip


def plan_of_version_1(facts: Mapping[str, Any]) -> Plan:
    """Return the plan that the facts in the head of a 0.1 ledger describe.

    Their α is a placeholder of ones; `dp_release` has its multiplier on its own line only.
    """
    odd = sorted(set(facts) - FACTS)
    if odd:
        raise UserError(f"the head of the ledger has unknown fields: {', '.join(odd)}")
    try:
        plan = _plan(facts)
        told = facts["mechanism"], facts["sampler"]
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"the head of the ledger is of another version ({error})") from error
    if plan.release is not None and told != (plan.mechanism, plan.release.sampler):
        raise UserError(
            f"mechanism {told[0]} and sampler {told[1]} are not those of the release, which is of "
            f"{plan.mechanism} and {plan.release.sampler}"
        )
    return plan


def _plan(facts: Mapping[str, Any]) -> Plan:
    """The plan, its fields under their present names."""
    given, epochs, of_n = facts["delta"], facts["epochs"], facts["num_examples"]
    private = {
        "layer_scales": facts["scales_source"] == "first_batch",
        "vocabulary": not facts["vocabulary_is_public"],
        "lengths": facts["uses_lengths"],
    }
    return Plan(
        release=_release(facts),
        noise_multiplier=facts["noise_multiplier"],
        decay=Decay(**facts["decay"]),
        epochs=epochs,
        steps_per_epoch=facts["steps"] // epochs if epochs else 0,
        num_records=of_n,
        delta=choose_delta(
            num_examples=of_n,
            delta=given,
            delta_mode=facts["delta_mode"],
            corpus_is_public=facts["corpus_is_public"],
        ),
        delta_mode=facts["delta_mode"] if given is None else "value",
        scales_source=facts["scales_source"],
        private_inputs=tuple(name for name, is_there in private.items() if is_there),
        # Perhaps the loop: it was not recorded.
        clipping="ghost" if facts["mechanism"] == "dp_sgd" else "loop",
        seed_is_fixed=facts["seed_is_fixed"],
        chooses_checkpoint=facts["best_checkpoint_on_validation"],
        stops_early=facts["stops_early"],
    )


def _release(facts: Mapping[str, Any]) -> Release:
    """One step; q was not written down and follows from the sizes."""
    release = replace(Release.from_dict(facts["release"]), layer_scales=None)
    if release.sampler == "poisson":
        rate = min(round(release.batch_size) / facts["num_examples"], 1.0)
        release = replace(release, sample_rate=rate)
    return release
