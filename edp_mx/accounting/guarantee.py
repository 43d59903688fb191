"""Counts what a run spends, both ways, and says what it does not cover."""

from __future__ import annotations

import math
from typing import Optional, Sequence, Tuple

from edp_mx.accounting.bound import (
    Bound,
    count_as_published,
    count_released,
    count_what_holds,
    unbounded,
)
from edp_mx.accounting.coverage import (
    FIXED_SEED,
    NO_MECHANISM,
    RESOLUTION,
    VANISHING_NOISE,
    not_covered,
    private_inputs,
)
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.delta import choose_delta
from edp_mx.accounting.events import Composition, neighbours_of
from edp_mx.accounting.ledger import Entry
from edp_mx.accounting.published import count_published
from edp_mx.accounting.release import Release
from edp_mx.accounting.report import Guarantee
from edp_mx.errors import UserError

SMALL_LAST_NOISE = 10.0  # z₀ / z_{T−1} above which to warn


def guarantee(
    *,
    mechanism: str = "edp_sgd",
    release: Optional[Release],
    noise_multiplier: float,
    decay: Decay,
    epochs: int,
    steps: int,
    num_examples: int,
    delta: Optional[float] = None,
    delta_mode: str = "default",
    corpus_is_public: bool = True,
    sampler: str = "shuffle",
    scales_source: str,
    vocabulary_is_public: bool,
    seed_is_fixed: bool,
    best_checkpoint_on_validation: bool = False,
    stops_early: bool = False,
    uses_lengths: bool = False,
    entries: Optional[Sequence[Entry]] = None,
) -> Guarantee:
    """Counts what a run spends, both ways, and says what it does not cover.

    Args:
        mechanism: none, edp_sgd or dp_sgd.
        release: what one step gives away; None only for mechanism none.
        noise_multiplier: z₀ ≥ 0.
        decay: d(t).
        epochs: T, the committed total; 0 gives ε = 0.
        steps: for the report; ε does not depend on it.
        num_examples: n.
        delta, delta_mode, corpus_is_public: see `choose_delta`.
        sampler: shuffle (each record at most once an epoch, batches disjoint), or poisson.
        scales_source: ones, sqrt_dim, public_batch, or first_batch, which has no ε.
        vocabulary_is_public: False when read off private text, which has no ε.
        seed_is_fixed: the noise can be drawn again by whoever knows the seed.
        best_checkpoint_on_validation: the released weights were chosen on private data.
        stops_early: the run may end before its epochs, by its score on private validation data.
        uses_lengths: batches were made by the utterances' lengths.
        entries: what was released, or is planned to be, as a ledger has it; left out, T epochs of
            shuffled batches.

    Raises:
        UserError: a sampler without an accountant, or a refused δ.

    Guarantee: `holds` is what the whole run satisfies towards someone who sees every aggregate;
    `holds_if` is the same with the conditions granted that it names.

    Edge cases: mechanism none and z₀ = 0 give ∞ in all three.
    """
    chosen = choose_delta(
        num_examples=num_examples,
        delta=delta,
        delta_mode=delta_mode,
        corpus_is_public=corpus_is_public,
    )
    _refuse_contradictions(mechanism, release, sampler)
    reasons, conditions = private_inputs(
        scales_source=scales_source,
        vocabulary_is_public=vocabulary_is_public,
        uses_lengths=uses_lengths,
    )
    published = holds = holds_if = unbounded(NO_MECHANISM)
    if release is not None:
        if entries is None:
            published, holds_if = _count(
                release, noise_multiplier, decay, epochs if steps else 0, chosen, conditions
            )
        else:
            published = count_published(release, entries, delta=chosen)
            composition = Composition(neighbours_of(release), [entry.event for entry in entries])
            holds_if = count_released(composition, delta=chosen, conditions=conditions)
        if seed_is_fixed:
            holds_if = unbounded(FIXED_SEED, *holds_if.reasons)
        last = decay.noise_multiplier_at(noise_multiplier, max(epochs - 1, 0))
        if noise_multiplier > 0 and _vanishes(release, last):
            holds_if = unbounded(VANISHING_NOISE, *holds_if.reasons)
        holds = unbounded(*holds_if.reasons, *reasons) if reasons else holds_if
    return Guarantee(
        mechanism=mechanism,
        release=release,
        noise_multiplier=noise_multiplier,
        decay=decay,
        epochs=epochs,
        steps=steps,
        num_examples=num_examples,
        delta=chosen,
        delta_mode="value" if delta is not None else delta_mode,
        sampler=sampler,
        scales_source=scales_source,
        as_published=published,
        holds=holds,
        holds_if=holds_if,
        warnings=_warnings(decay, epochs, chosen, num_examples) if release else (),
        not_covered=not_covered(
            best_checkpoint_on_validation=best_checkpoint_on_validation,
            stops_early=stops_early,
            worker_noise_multiplier=(
                None if release is None else release.worker_noise_multiplier(noise_multiplier)
            ),
            clips_examples=release is not None and release.clips == "example",
        ),
    )


def _refuse_contradictions(mechanism: str, release: Optional[Release], sampler: str) -> None:
    """Refuses a release that is not the mechanism's or the sampler's.

    Raises:
        UserError: says which.
    """
    if release is not None and sampler != release.sampler:
        raise UserError(f"sampler is {sampler!r}, but the release was drawn by {release.sampler}")
    if (release is None) != (mechanism == "none"):
        raise UserError(f"mechanism is {mechanism!r}; a release belongs to each but none")
    if release is not None and (release.clips == "example") != (mechanism == "dp_sgd"):
        raise UserError(
            f"mechanism is {mechanism!r}, but the release clips each {release.clips}: dp_sgd clips "
            "each example, edp_sgd each micro_batch"
        )


def _vanishes(release: Release, noise_multiplier: float) -> bool:
    """Whether a worker's noise is below what float32 can add to a gradient of norm C α_k."""
    return release.relative_noise(noise_multiplier) < RESOLUTION


def _count(
    release: Release,
    noise_multiplier: float,
    decay: Decay,
    epochs: int,
    delta: float,
    conditions: Tuple[str, ...],
) -> Tuple[Bound, Bound]:
    """ε as published, and ε that holds under the conditions."""
    published = count_as_published(
        noise_multiplier=noise_multiplier, decay=decay, epochs=epochs, delta=delta
    )
    holds_if = count_what_holds(
        release=release,
        noise_multiplier=noise_multiplier,
        decay=decay,
        epochs=epochs,
        delta=delta,
        conditions=conditions,
    )
    return published, holds_if


def _warnings(decay: Decay, epochs: int, delta: float, num_examples: int) -> Tuple[str, ...]:
    """What a reader should look at twice."""
    found = []
    fall = -decay.log_factor(max(epochs - 1, 0))
    if fall > math.log(SMALL_LAST_NOISE):
        found.append(
            f"the noise of the last epoch is 10^{fall / math.log(10):.1f} times smaller than that "
            "of the first, so nearly all of epsilon is spent at the end"
        )
    if delta * num_examples >= 1:
        found.append("delta is not below 1/n: it permits publishing an utterance outright")
    return tuple(found)
