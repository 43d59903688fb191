"""The mechanism that a configuration asks for, with its scales and its noise key."""

from __future__ import annotations

from typing import Optional, Tuple

import numpy as np
from mxnet import autograd

from edp_mx.accounting.release import Release
from edp_mx.config import ExperimentConfig
from edp_mx.data.batching import Batch
from edp_mx.data.encoding import encode
from edp_mx.data.sampling import Shard
from edp_mx.data.utterance import Utterance
from edp_mx.distributed import Workers
from edp_mx.experiments.prepare import Prepared
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layer_scales import scales_by_norm, scales_by_size
from edp_mx.privacy.mechanism import EDPSGD
from edp_mx.privacy.noise import NoiseStream, refuse_equal
from edp_mx.training.loop import seed_dropout

PUBLIC_TOKENS = 12  # length of a random utterance


def build_mechanism(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    shard: Shard,
    flat: FlatGradients,
) -> Optional[EDPSGD]:
    """eDP-SGD as configured; None for training without privacy.

    Raises:
        UserError: two workers hold the same noise key.
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
        layer_scales=layer_scales(config, workers, prepared, shard, flat),
        adjacency=privacy.adjacency,
        variant=privacy.variant,
    )
    workers.agree("the release", release)
    return EDPSGD(
        release=release,
        noise_multiplier=privacy.noise_multiplier,
        decay=privacy.decay,
        flat=flat,
        noise=noise,
    )


def layer_scales(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    shard: Shard,
    flat: FlatGradients,
) -> Tuple[float, ...]:
    """α, from the configured source; the same on all workers."""
    source = config.privacy.layer_scales
    if source == "ones":
        return (1.0,) * len(flat.layers)
    if source == "sqrt_dim":
        return scales_by_size(flat)
    if source == "first_batch":
        batch = prepared.train.batch(next(iter(shard.micro_batches(0))))
    else:
        batch = random_batch(prepared, size=shard.micro_batch_size, seed=config.training.seed)
    seed_dropout(config.training.seed, workers.rank)
    with autograd.record():
        loss = prepared.model.loss(batch).mean()
    loss.backward()
    return scales_by_norm(flat, workers.mean)


def random_batch(prepared: Prepared, *, size: int, seed: int) -> Batch:
    """Random tokens with random labels: a batch in which there is nothing of the data."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x9A1B]))
    vocabulary = prepared.vocabulary
    known = vocabulary.wordpiece.pieces if vocabulary.wordpiece else vocabulary.words
    utterances = [
        Utterance(
            tokens=tuple(generator.choice(known, PUBLIC_TOKENS)),
            slots=tuple(generator.choice(vocabulary.slots, PUBLIC_TOKENS)),
            intent=generator.choice(vocabulary.intents),
        )
        for _ in range(size)
    ]
    return encode(utterances, vocabulary).batch(range(size))
