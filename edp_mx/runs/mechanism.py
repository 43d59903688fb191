"""The mechanism that a configuration asks for, with its scales and its noise key."""

from __future__ import annotations

from typing import Iterator, List, Sequence

import numpy as np
from mxnet import autograd

from edp_mx.config import ExperimentConfig
from edp_mx.data.batching import Batch
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.mixing import away_from_start
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.clipping import Unclipped
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.layer_scales import (
    scales_by_norm,
    scales_by_release,
    scales_by_size,
    settle_scales,
)
from edp_mx.dp.privacy.mechanism import AnyMechanism, Mechanism, WithoutPrivacy
from edp_mx.dp.privacy.noise import NoiseStream, refuse_equal
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.dp.spending import Spending
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.errors import UserError
from edp_mx.runs.prepare import Prepared
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, no_heartbeat

PUBLIC_TOKENS = 12  # length of a random utterance
LENGTHS = (3, 1, 5, 2, 4, 1)  # of those that ghost clipping is tried out on, with padding


def build_mechanism(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    sampler: Sampler,
    flat: FlatGradients,
    *,
    spending: Spending,
    heartbeat: Heartbeat = no_heartbeat,
) -> AnyMechanism:
    """Build eDP-SGD or DP-SGD as configured, and complete the plan by α.

    The cost of α is in the ledger of `spending` before α is released. A resumed run takes its α
    from there: it is not released a second time.
    """
    privacy = config.privacy
    if privacy.mechanism == "none":
        return WithoutPrivacy(
            clipping=Unclipped(flat=flat), units_per_worker=sampler.micro_batches_per_worker
        )
    noise = (
        NoiseStream.from_operating_system(gaussian=privacy.noise.gaussian)
        if privacy.insecure_fixed_seed is None
        else NoiseStream.insecure(
            seed=privacy.insecure_fixed_seed, rank=workers.rank, gaussian=privacy.noise.gaussian
        )
    )
    refuse_equal(workers.gather(noise.fingerprint))
    scales = spending.known_scales()
    if scales is None:
        found = layer_scales(
            config, workers, prepared, sampler, flat, noise=noise, heartbeat=heartbeat
        )
        scales = settle_scales(found, unit=privacy.layer_scales_unit)
    plan = spending.complete(scales)
    takes_many, why_not = CLIPPINGS[plan.clipping].takes_many, prepared.model.why_no_ghost
    if takes_many and why_not:
        raise UserError(f"privacy.clipping: {why_not}; set it to loop", is_shared=True)
    clipping = clipping_for(
        plan.clipping,
        plan.released,
        flat,
        prepared.model,
        chunk_size=min(privacy.chunk_size, prepared.model.most_at_once),
    )
    if takes_many:
        encoded = prepared.encode(random_utterances(prepared.vocabulary, LENGTHS, seed=0x6057))
        with away_from_start(prepared.model):
            refuse_wrong_on(clipping, prepared.model.loss, encoded.batch, num_records=len(LENGTHS))
    return Mechanism(plan=plan, clipping=clipping, noise=noise)


def layer_scales(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    sampler: Sampler,
    flat: FlatGradients,
    *,
    noise: NoiseStream,
    heartbeat: Heartbeat = no_heartbeat,
) -> np.ndarray:
    """Return the values (L,) that α is made from, by the configured source; alike on all."""
    source = config.privacy.layer_scales
    if source == "ones":
        return np.ones(len(flat.layers))
    if source == "sqrt_dim":
        return scales_by_size(flat)
    if source == "dp_release":
        return scales_by_release(
            flat,
            release=config.privacy.scale_release,
            backward_passes=disjoint_passes(config, workers, prepared, sampler, heartbeat),
            noise=noise,
            num_workers=workers.size,
            mean_over_workers=workers.mean,
        )
    if source == "first_batch":
        drawn = (draw.records for draw in sampler.draws(0) if len(draw.records))
        batch = prepared.train.batch(next(drawn, sampler.indices))
    else:
        public = [PUBLIC_TOKENS] * micro_batch_of(sampler)
        utterances = random_utterances(prepared.vocabulary, public, seed=config.training.seed)
        batch = prepared.encode(utterances).batch(range(len(public)))
    seed_dropout(config.training.seed, workers.rank)
    _backward(prepared, batch, config.training.loss_factor)
    return scales_by_norm(flat, workers.mean)


def disjoint_passes(
    config: ExperimentConfig,
    workers: Workers,
    prepared: Prepared,
    sampler: Sampler,
    heartbeat: Heartbeat,
) -> Iterator[int]:
    """Make backward passes on this worker's share of m micro-batches, no record twice.

    Which records share a micro-batch depends on the seed and their number, not on their content.
    Too few records are refused on all workers alike.
    """
    release, seed = config.privacy.scale_release, config.training.seed
    size = micro_batch_of(sampler)
    for rank, found in enumerate(workers.gather(len(sampler.indices))):
        needed = release.share(rank, num_workers=workers.size) * size
        if needed > found:
            raise UserError(
                f"privacy.scale_release.micro_batches: {release.micro_batches} disjoint "
                f"micro-batches of {size} records need {needed} records of worker {rank}, which "
                f"has {found}; lower it or training.batch_size, or use layer_scales: ones",
                is_shared=True,
            )
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0xA1FA, workers.rank]))
    records = generator.permutation(sampler.indices)
    for number in range(release.share(workers.rank, num_workers=workers.size)):
        heartbeat(f"layer scales, micro-batch {number}")
        batch = prepared.train.batch(records[number * size : (number + 1) * size])
        seed_dropout(seed, workers.rank, number)
        _backward(prepared, batch, config.training.loss_factor)
        yield number


def micro_batch_of(sampler: Sampler) -> int:
    """Return |M| as a whole number, at least 1."""
    return max(1, round(sampler.micro_batch_size))


def _backward(prepared: Prepared, batch: Batch, factor: float) -> None:
    with autograd.record():
        loss = prepared.model.loss(batch).mean() * factor
    loss.backward()


def random_utterances(
    vocabulary: Vocabulary, lengths: Sequence[int], *, seed: int
) -> List[Utterance]:
    """Return random tokens with random labels, which hold nothing of the data."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x9A1B]))
    known = vocabulary.tokenizer.pieces if vocabulary.tokenizer else vocabulary.words
    return [random_utterance(vocabulary, known, length, generator) for length in lengths]


def random_utterance(
    vocabulary: Vocabulary, words: Sequence[str], length: int, generator: np.random.Generator
) -> Utterance:
    """Return tokens drawn from some words, with labels drawn from the vocabulary."""
    return Utterance(
        tokens=tuple(map(str, generator.choice(words, length))),
        slots=tuple(map(str, generator.choice(vocabulary.slots, length))),
        intent=str(generator.choice(vocabulary.intents)),
    )
