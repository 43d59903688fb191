"""What a run promises to one utterance, said in full."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

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
from edp_mx.errors import UserError

UNIT = "one utterance"
SMALL_LAST_NOISE = 10.0  # z₀ / z_{T−1} above which to warn


@dataclass(frozen=True)
class Guarantee:
    """The report of PRIVACY, "The report object"; made by `guarantee`.

    Attributes:
        mechanism: none, edp_sgd or dp_sgd.
        release: κ, N, |M|, C, α, adjacency, variant and what is clipped; None without a mechanism.
        noise_multiplier: z₀.
        decay: d(t).
        epochs: T, as committed to before the run.
        steps: optimizer steps in all; under shuffling they do not change ε.
        num_examples: n.
        delta: δ.
        delta_mode: default, value or paper.
        sampler: how batches were drawn.
        scales_source: where α came from.
        as_published: ε as the paper counts it.
        holds: ε that holds for what ran; ∞ with its reasons.
        holds_if: ε under the conditions that it names; equal to `holds` where there are none.
        warnings: what a reader should look at twice.
        not_covered: what no ε here speaks of.
    """

    mechanism: str
    release: Optional[Release]
    noise_multiplier: float
    decay: Decay
    epochs: int
    steps: int
    num_examples: int
    delta: float
    delta_mode: str
    sampler: str
    scales_source: str
    as_published: Bound
    holds: Bound
    holds_if: Bound
    warnings: Tuple[str, ...]
    not_covered: Tuple[str, ...]

    @property
    def effective_noise_multipliers(self) -> Tuple[float, ...]:
        """z_eff by epoch; empty without a mechanism."""
        if self.release is None:
            return ()
        effective = self.release.effective_noise_multiplier(self.noise_multiplier)
        return tuple(self.decay.noise_multiplier_at(effective, t) for t in range(self.epochs))

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON, for `privacy.json`; ∞ and overflow are null beside log10 and reason."""
        release = self.release
        return {
            "unit": UNIT,
            "mechanism": self.mechanism,
            "adjacency": release and release.adjacency,
            "kappa": release and release.kappa,
            "sampler": self.sampler,
            "num_workers": release and release.num_workers,
            "micro_batch_size": release and release.micro_batch_size,
            "max_grad_norm": release and release.max_grad_norm,
            "layer_scales": release and list(release.layer_scales),
            "scales_source": release and self.scales_source,
            "variant": release and release.variant,
            "clips": release and release.clips,
            "noise_multiplier": release and self.noise_multiplier,
            "decay": release and {"kind": self.decay.kind, "rate": self.decay.rate},
            "effective_noise_multiplier": list(self.effective_noise_multipliers),
            "epochs": self.epochs,
            "steps": self.steps,
            "num_examples": self.num_examples,
            "delta": self.delta,
            "delta_mode": self.delta_mode,
            "one_over_n": 1 / self.num_examples,
            "as_published": self.as_published.to_dict(),
            "holds": self.holds.to_dict(),
            "holds_if": self.holds_if.to_dict(),
            "warnings": list(self.warnings),
            "not_covered": list(self.not_covered),
        }

    def describe(self) -> str:
        """Plain lines for the console."""
        lines = [
            f"Privacy of {UNIT}, delta = {self.delta:.3g} ({self.delta_mode}; "
            f"1/n = {1 / self.num_examples:.3g})",
            f"  epsilon as published  {_say(self.as_published)}",
            f"  epsilon that holds    {_say(self.holds)}",
        ]
        if self.holds_if.conditions:
            lines.append(f"  epsilon that holds if {_say(self.holds_if)}")
            lines += [f"    if {condition}" for condition in self.holds_if.conditions]
        lines += self._describe_release()
        lines += [f"  note: {warning}" for warning in self.warnings]
        lines += ["  not covered by any of them:", *(f"    - {text}" for text in self.not_covered)]
        return "\n".join(lines)

    def _describe_release(self) -> List[str]:
        """What was released, in one or two lines."""
        if self.release is None:
            return []
        release, effective = self.release, self.effective_noise_multipliers
        clipped = "each utterance clipped, " if release.clips == "example" else ""
        lines = [
            f"  released: {clipped}{release.variant}, {release.adjacency}, kappa "
            f"{release.kappa:g}, "
            f"{release.num_workers} workers x {release.micro_batch_size}, "
            f"scales {self.scales_source}, sampler {self.sampler}, {self.steps} steps"
        ]
        if effective:
            lines.append(
                f"  noise multiplier {self.noise_multiplier:g}, effective {effective[0]:.4g} "
                f"(epoch 0) to {effective[-1]:.4g} (epoch {self.epochs - 1})"
            )
        return lines


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
    if release is not None and sampler != release.sampler:
        raise UserError(f"sampler is {sampler!r}, but the release was drawn by {release.sampler}")
    if (release is None) != (mechanism == "none"):
        raise UserError(f"mechanism is {mechanism!r}; a release belongs to each but none")
    if release is not None and (release.clips == "example") != (mechanism == "dp_sgd"):
        raise UserError(
            f"mechanism is {mechanism!r}, but the release clips each {release.clips}: dp_sgd clips "
            "each example, edp_sgd each micro_batch"
        )
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


def _say(bound: Bound) -> str:
    """One ε in words."""
    if bound.reasons:
        return f"infinite: {'; '.join(bound.reasons)}"
    how = "" if bound.rho is None else " conversion"
    return f"{bound.epsilon} ({bound.accountant}, {bound.conversion}{how})"
