"""The privacy plan of a configured run: made once, when data and workers are known."""

from __future__ import annotations

from typing import Optional, Sequence, Union

import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.config import PUBLIC_CORPORA
from edp_mx.data.corpus import Corpus
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.accounting.budget import refuse_blind_budget
from edp_mx.dp.accounting.delta import choose_delta
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.target import calibrated
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import Sampler, release_of
from edp_mx.runs.ancestors import Brought
from edp_mx.runs.declarations import declarations_of


def sampler_for(
    config: ExperimentConfig,
    num_records: int,
    *,
    rank: int,
    num_workers: int,
    users: Optional[np.ndarray],
    lengths: Union[Sequence[int], np.ndarray],
) -> Sampler:
    """Return a worker's share of the training records, drawn as configured."""
    training, privacy = config.training, config.privacy
    assert privacy.unit is not None  # PrivacyConfig settles it
    return deal(
        unit=privacy.unit,
        sampler=privacy.sampler,
        num_records=num_records,
        batch_size=training.batch_size,
        rank=rank,
        num_workers=num_workers,
        seed=training.seed,
        micro_batches_per_worker=privacy.micro_batches_per_worker,
        users=users,
        max_utterances_per_user=privacy.max_utterances_per_user,
        length_buckets=training.length_buckets,
        lengths=lengths,
        adjacency=privacy.adjacency,
        insecure_fixed_seed=privacy.insecure_fixed_seed,
    )


def plan_for(
    config: ExperimentConfig,
    corpus: Corpus,
    vocabulary: Vocabulary,
    draws: Sampler,
    num_workers: int,
    *,
    brought: Brought,
) -> Plan:
    """Return the plan of a run, complete but for α; a target ε is turned into z₀.

    A target or budget that cannot see why ε is infinite is refused. What the model has `brought`
    along comes from `brought_along`, on rank 0: the hashes are those of one machine.
    """
    privacy, training = config.privacy, config.training
    private = {
        "layer_scales": privacy.layer_scales == "first_batch",
        "vocabulary": not vocabulary.is_public or brought.has_own_words,
        "start": brought.is_own,
        "lengths": training.length_buckets > 0,
    }
    is_released = privacy.layer_scales == "dp_release"
    plan = Plan(
        release=_release_for(config, draws, num_workers),
        noise_multiplier=0.0 if privacy.noise_multiplier is None else privacy.noise_multiplier,
        decay=privacy.decay,
        epochs=training.epochs,
        steps_per_epoch=draws.steps_per_epoch,
        num_records=draws.num_units,
        delta=choose_delta(
            num_examples=draws.num_units,
            delta=privacy.delta,
            delta_mode=privacy.delta_mode,
            corpus_is_public=corpus.name in PUBLIC_CORPORA,
        ),
        delta_mode=privacy.delta_mode if privacy.delta is None else "value",
        scales_source=privacy.layer_scales,
        scales_unit=privacy.layer_scales_unit,
        scales_multiplier=privacy.scale_release.noise_multiplier if is_released else None,
        private_inputs=tuple(name for name, is_there in private.items() if is_there),
        assumed_public=tuple(sorted(privacy.assume_public)),
        declarations=declarations_of(config, brought),
        clipping=privacy.clipping or "loop",
        gaussian=privacy.noise.gaussian,
        seed_is_fixed=privacy.insecure_fixed_seed is not None,
        chooses_checkpoint=training.checkpoint == "best_on_validation",
        stops_early=training.early_stop_patience > 0,
        max_epsilon=privacy.max_epsilon,
    )
    if privacy.max_epsilon is not None:
        refuse_blind_budget(plan, "privacy.max_epsilon")
    if privacy.target_epsilon is None or plan.release is None:
        return plan
    refuse_blind_budget(plan, "privacy.target_epsilon")
    return calibrated(plan, target_epsilon=privacy.target_epsilon)


def _release_for(config: ExperimentConfig, draws: Sampler, num_workers: int) -> Optional[Release]:
    privacy = config.privacy
    if privacy.mechanism == "none":
        return None
    assert privacy.unit is not None  # PrivacyConfig settles it
    return release_of(
        draws,
        unit=privacy.unit,
        num_workers=num_workers,
        max_grad_norm=privacy.max_grad_norm,
        clip_rule=privacy.clip_rule,
        adjacency=privacy.adjacency,
        variant=privacy.variant,
    )
