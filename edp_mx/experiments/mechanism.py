"""The mechanism that a configuration asks for, with its scales and its noise key."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np
from mxnet import autograd, gluon

from edp_mx.accounting.release import Release
from edp_mx.config import ExperimentConfig
from edp_mx.data.batching import Batch
from edp_mx.data.encoding import encode
from edp_mx.data.poisson_sampling import AnyShard
from edp_mx.distributed import Workers
from edp_mx.errors import UserError
from edp_mx.experiments.ghost_check import check_ghost, random_utterances
from edp_mx.experiments.prepare import Prepared
from edp_mx.privacy.clipping import LoopClipping, PerExampleClipping
from edp_mx.privacy.config import PrivacyConfig
from edp_mx.privacy.dp_sgd import DPSGD
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.ghost.clipping import GhostClipping
from edp_mx.privacy.layer_scales import scales_by_norm, scales_by_size
from edp_mx.privacy.mechanism import EDPSGD, Mechanism
from edp_mx.privacy.noise import NoiseStream, refuse_equal
from edp_mx.privacy.released_scales import scales_by_release
from edp_mx.training.gradient import seed_dropout

PUBLIC_TOKENS = 12  # length of a random utterance


def build_mechanism(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    shard: AnyShard,
    flat: FlatGradients,
    *,
    scales: Optional[Tuple[float, ...]] = None,
    on_pass: Callable[[str], None] = lambda _: None,
) -> Optional[Mechanism]:
    """eDP-SGD or DP-SGD as configured; None for training without privacy.

    With `layer_scales: dp_release` this spends `privacy.scale_release.event(…)`, which is to be in
    the ledger before this is called.

    Args:
        scales: α of the run that is resumed, which are neither made nor released a second time.
        on_pass: told of each backward pass made for α: the watchdog listens.

    Raises:
        UserError: two workers hold the same noise key, or there is too little data to release α.
    """
    privacy = config.privacy
    if privacy.mechanism == "none":
        return None
    noise = (
        NoiseStream.from_operating_system()
        if privacy.insecure_fixed_seed is None
        else NoiseStream.insecure(seed=privacy.insecure_fixed_seed, rank=workers.rank)
    )
    refuse_equal(workers.gather(noise.fingerprint))
    release = Release(
        num_workers=workers.size,
        micro_batch_size=shard.micro_batch_size,
        max_grad_norm=privacy.max_grad_norm,
        layer_scales=(
            layer_scales(config, workers, prepared, shard, flat, noise=noise, on_pass=on_pass)
            if scales is None
            else scales
        ),
        adjacency=privacy.adjacency,
        variant=privacy.variant,
        sampler=shard.sampler,
        clips=privacy.clips,
    )
    workers.agree("the release", release)
    assert privacy.noise_multiplier is not None  # `plan.with_noise` has found it
    common: Dict[str, Any] = {
        "release": release,
        "noise_multiplier": privacy.noise_multiplier,
        "decay": privacy.decay,
        "flat": flat,
        "noise": noise,
    }
    if privacy.mechanism == "dp_sgd":
        clipping = clipping_of(privacy, flat=flat, network=prepared.model, release=release)
        if isinstance(clipping, GhostClipping):
            check_ghost(clipping, prepared, flat=flat, release=release)
        return DPSGD(**common, clipping=clipping)
    return EDPSGD(**common)


def clipping_of(
    privacy: PrivacyConfig, *, flat: FlatGradients, network: gluon.Block, release: Release
) -> PerExampleClipping:
    """How DP-SGD clips each example's gradient, as configured.

    Raises:
        UserError: a network whose norms ghost clipping has no rule for.
    """
    if privacy.per_example == "loop":
        return LoopClipping(
            flat=flat, max_grad_norm=release.max_grad_norm, layer_scales=release.layer_scales
        )
    return GhostClipping(
        flat=flat,
        network=network,
        max_grad_norm=release.max_grad_norm,
        layer_scales=release.layer_scales,
        chunk_size=privacy.chunk_size,
        passes=2 if privacy.per_example == "ghost_two_passes" else 1,
    )


def layer_scales(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    shard: AnyShard,
    flat: FlatGradients,
    *,
    noise: NoiseStream,
    on_pass: Callable[[str], None] = lambda _: None,
) -> Tuple[float, ...]:
    """α, from the configured source; the same on all workers.

    Raises:
        UserError: too few records for as many disjoint micro-batches as `dp_release` wants.
    """
    source = config.privacy.layer_scales
    if source == "ones":
        return (1.0,) * len(flat.layers)
    if source == "sqrt_dim":
        return scales_by_size(flat)
    if source == "dp_release":
        return scales_by_release(
            flat,
            release=config.privacy.scale_release,
            backward_passes=disjoint_passes(config, workers, prepared, shard, on_pass),
            noise=noise,
            num_workers=workers.size,
            mean_over_workers=workers.mean,
        )
    if source == "first_batch":
        drawn = (indices for indices in shard.micro_batches(0) if len(indices))
        batch = prepared.train.batch(next(drawn, shard.indices))
    else:
        batch = random_batch(prepared, size=micro_batch_of(shard), seed=config.training.seed)
    seed_dropout(config.training.seed, workers.rank)
    with autograd.record():
        loss = prepared.model.loss(batch).mean()
    loss.backward()
    return scales_by_norm(flat, workers.mean)


def disjoint_passes(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    shard: AnyShard,
    on_pass: Callable[[str], None],
) -> Iterator[int]:
    """Backward passes on this worker's share of m micro-batches, no record twice.

    Which records lie together depends on the seed and on how many there are, not on what they say.

    Raises:
        UserError: too few records; raised on all workers alike.
    """
    release, seed, size = config.privacy.scale_release, config.training.seed, micro_batch_of(shard)
    most = release.share(0, num_workers=workers.size)  # no worker has more
    if most * size > len(prepared.train) // workers.size:
        raise UserError(
            f"privacy.scale_release.micro_batches: {release.micro_batches} disjoint micro-batches "
            f"of {size} records need {most * size * workers.size} records, and the training part "
            f"has {len(prepared.train)}; lower it or training.batch_size, or use layer_scales: ones"
        )
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0xA1FA, workers.rank]))
    records = generator.permutation(shard.indices)
    for number in range(release.share(workers.rank, num_workers=workers.size)):
        on_pass(f"layer scales, micro-batch {number}")
        batch = prepared.train.batch(records[number * size : (number + 1) * size])
        seed_dropout(seed, workers.rank, number)
        with autograd.record():
            loss = prepared.model.loss(batch).mean()
        loss.backward()
        yield number


def micro_batch_of(shard: AnyShard) -> int:
    """|M| as a whole number, from 1."""
    return max(1, round(shard.micro_batch_size))


def random_batch(prepared: Prepared, *, size: int, seed: int) -> Batch:
    """Random tokens with random labels: a batch in which there is nothing of the data."""
    utterances = random_utterances(prepared, [PUBLIC_TOKENS] * size, seed=seed)
    return encode(utterances, prepared.vocabulary).batch(range(size))
