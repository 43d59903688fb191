"""What a run will release if nothing interrupts it, and how much noise a wanted ε asks for."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, Callable, Dict, Optional, Tuple

from edp_mx.accounting.events import event_of, poisson_multiplier
from edp_mx.accounting.ledger import Entry
from edp_mx.accounting.ledger_guarantee import guarantee_of as guarantee_of
from edp_mx.accounting.ledger_plan import SCALES
from edp_mx.accounting.release import Release
from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import PUBLIC_CORPORA
from edp_mx.data.poisson_sampling import AnyShard, PoissonShard
from edp_mx.errors import UserError
from edp_mx.experiments.prepare import Prepared

_PRECISION = 1e-4  # of the calibrated multiplier, relative, on the safe side
_LARGEST = 1e9


def release_of(config: ExperimentConfig, shard: AnyShard, num_workers: int) -> Optional[Release]:
    """What a step gives away; None without a mechanism.

    The scales are 1 here: the largest always is, and no other counts.
    """
    privacy = config.privacy
    if privacy.mechanism == "none":
        return None
    return Release(
        num_workers=num_workers,
        micro_batch_size=shard.micro_batch_size,
        max_grad_norm=privacy.max_grad_norm,
        layer_scales=(1.0,),
        adjacency=privacy.adjacency,
        variant=privacy.variant,
        sampler=shard.sampler,
        clips=privacy.clips,
    )


def facts_of(
    config: ExperimentConfig, prepared: Prepared, shard: AnyShard, num_workers: int
) -> Dict[str, Any]:
    """The arguments of `guarantee` as strict JSON: the head of the ledger."""
    privacy, training = config.privacy, config.training
    release = release_of(config, shard, num_workers)
    return {
        "mechanism": privacy.mechanism,
        "release": None if release is None else release.to_dict(),
        "noise_multiplier": privacy.noise_multiplier,
        "decay": asdict(privacy.decay),
        "epochs": training.epochs,
        "steps": training.epochs * shard.steps_per_epoch,
        "num_examples": len(prepared.train),
        "delta": privacy.delta,
        "delta_mode": privacy.delta_mode,
        "corpus_is_public": prepared.corpus.name in PUBLIC_CORPORA,
        "sampler": shard.sampler,
        "scales_source": privacy.layer_scales,
        "vocabulary_is_public": prepared.vocabulary.is_public,
        "seed_is_fixed": privacy.insecure_fixed_seed is not None,
        "best_checkpoint_on_validation": training.checkpoint == "best_on_validation",
        "stops_early": training.early_stop_patience > 0,
        "uses_lengths": training.length_buckets > 0,
    }


def entry_of(
    config: ExperimentConfig, shard: AnyShard, num_workers: int, epoch: int, steps: int
) -> Entry:
    """Some steps of an epoch; shuffled, they count as one epoch however many they are."""
    privacy, release = config.privacy, release_of(config, shard, num_workers)
    assert release is not None and privacy.noise_multiplier is not None
    multiplier = privacy.decay.noise_multiplier_at(privacy.noise_multiplier, epoch)
    rate = shard.sample_rate if isinstance(shard, PoissonShard) else 1.0
    event = event_of(release, multiplier, steps=steps, sample_rate=rate)
    return Entry(f"epoch {epoch}", event, multiplier)


def scales_entries(
    config: ExperimentConfig, shard: AnyShard, num_workers: int
) -> Tuple[Entry, ...]:
    """What α costs if it is released from the data; relative to the same as the steps."""
    privacy, release = config.privacy, release_of(config, shard, num_workers)
    if release is None or privacy.layer_scales != "dp_release":
        return ()
    event = privacy.scale_release.event(privacy.sampler)
    if event.sampler == "poisson":
        multiplier = poisson_multiplier(release, event.effective_noise_multiplier)
        event = replace(event, effective_noise_multiplier=multiplier)
    return (Entry(SCALES, event),)


def planned_entries(
    config: ExperimentConfig, shard: AnyShard, num_workers: int
) -> Tuple[Entry, ...]:
    """What the whole run will write into its ledger."""
    if config.privacy.mechanism == "none":
        return ()
    epochs = range(config.training.epochs)
    steps = (entry_of(config, shard, num_workers, t, shard.steps_per_epoch) for t in epochs)
    return (*scales_entries(config, shard, num_workers), *steps)


def with_noise(
    config: ExperimentConfig, epsilon_of: Callable[[ExperimentConfig], float]
) -> ExperimentConfig:
    """The configuration with z₀ set, found for `privacy.target_epsilon` where that is given.

    Args:
        epsilon_of: ε of the whole plan of a configuration with z₀.

    Raises:
        UserError: no noise reaches the target.

    Guarantee: ε at the z₀ found is at most the target.
    """
    target = config.privacy.target_epsilon
    if target is None or config.privacy.mechanism == "none":
        return config

    def at(log_multiplier: float) -> ExperimentConfig:
        privacy = replace(
            config.privacy, noise_multiplier=math.exp(log_multiplier), target_epsilon=None
        )
        return replace(config, privacy=privacy)

    low, high = math.log(1e-9), math.log(_LARGEST)
    if epsilon_of(at(high)) > target:
        raise UserError(
            f"privacy.target_epsilon: {target} is out of reach; something else than the steps "
            "costs more (privacy.scale_release), or it is too small"
        )
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_of(at(middle)) <= target else (middle, high)
    return at(high)
