"""The settings below `privacy:`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Optional, Tuple

from edp_mx.dp.accounting.choices import (
    ADJACENCIES,
    GAUSSIANS,
    SCALES_SOURCES,
    SCALES_UNITS,
    VARIANTS,
)
from edp_mx.dp.accounting.clippings import CLIP_RULES, CLIPPINGS
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.dp.accounting.units import MECHANISMS, UNITS, unit_of
from edp_mx.errors import UserError
from edp_mx.runtime.limits import LEAST_DELTA, LEAST_NORM, MOST_AT_ONCE, MOST_COUNTED, MOST_NORM
from edp_mx.runtime.settings import SettingError, Settings, setting

_PRIVATE_PRICE = ("published", "dp_release", "norm")  # variant, layer_scales, layer_scales_unit


@dataclass(frozen=True)
class NoiseConfig(Settings):
    """How the noise is drawn.

    Attributes:
        gaussian: plain (float32, the fastest) or hardened (float64, and what is released is rounded
            to a grid, so that its last bits say nothing); docs/privacy.md, section 10.
    """

    gaussian: str = setting("plain", one_of=GAUSSIANS)


@dataclass(frozen=True)
class ScaleRelease(Settings):
    """The mean layer norms of m disjoint micro-batches, released once, before training.

    The vector of layer norms w_j = (‖∇_k‖₂)_k of each micro-batch is clipped to B, all layers
    together; what is released is (1/m) Σ_j clip_B(w_j) + y, y ~ N(0, (√2 B z_a / m)² I).

    Attributes:
        noise_multiplier: z_a, above 0.
        clip: B, the most that ‖w_j‖₂, which is the norm of the whole gradient, may be.
        micro_batches: m, over all workers. The noise on the mean is √2 z_a / m in units of B:
            with z_a = 10, fewer than 300 leave little but noise.

    Guarantee:
        One Gaussian event of multiplier z_a: zCDP ρ_a = 1 / (2 z_a²), μ = 1 / z_a. For an utterance
        lies in at most one of the m micro-batches, which it may turn from any gradient to any
        other, and with it v_j = clip_B(w_j) to some v_j'. Both have norm ≤ B and no negative
        coordinate, so ⟨v_j, v_j'⟩ ≥ 0 and ‖v_j − v_j'‖² = ‖v_j‖² + ‖v_j'‖² − 2⟨v_j, v_j'⟩ ≤ 2 B².
        The sum moves by √2 B at most (not 2 B, as for vectors of any sign), and does so when the
        whole gradient moves from one layer into another. That holds for replace_one and for
        zero_out, which is a special case of "any gradient to any other".

        The records are taken without chance, so that no sampling amplifies this event, under
        Poisson sampling neither. Division by the largest, and the floor, are post-processing.
        Each worker noises its own sum with 1/√N of the noise: someone who sees the message of a
        single worker sees the multiplier z_a / √N.

    Source: docs/privacy.md, section 9.

    Example:
        >>> release = ScaleRelease(noise_multiplier=10.0, clip=1.0, micro_batches=300)
        >>> round(release.noise_stddev, 4), [release.share(r, num_workers=8) for r in (0, 7)]
        (0.0471, [38, 37])
    """

    noise_multiplier: float = setting(10.0, above=0, at_most=MOST_NORM)
    clip: float = setting(1.0, at_least=LEAST_NORM, at_most=MOST_NORM)
    micro_batches: int = setting(300, at_least=1, at_most=MOST_COUNTED)

    @property
    def sensitivity(self) -> float:
        """The largest ‖change‖₂ of the mean by one utterance: √2 B / m."""
        return math.sqrt(2) * self.clip / self.micro_batches

    @property
    def noise_stddev(self) -> float:
        """The noise per coordinate of the mean: √2 B z_a / m."""
        return self.sensitivity * self.noise_multiplier

    def worker_noise_stddev(self, num_workers: int) -> float:
        """Return the noise per coordinate of one worker's sum; N of them make up `noise_stddev`."""
        return self.noise_stddev * self.micro_batches / math.sqrt(num_workers)

    def share(self, rank: int, *, num_workers: int) -> int:
        """Return how many of the m micro-batches are this worker's."""
        return len(range(rank, self.micro_batches, num_workers))


@dataclass(frozen=True)
class PrivacyConfig(Settings):
    """How the gradients are made private.

    Attributes:
        mechanism: none (the paper's SGD), edp_sgd (Algorithm 1, which clips the mean gradient of a
            micro-batch) or dp_sgd (which clips the gradient of each utterance or user).
        unit: of clipping: micro_batch (edp_sgd), utterance (the default of dp_sgd) or user
            (dp_sgd on a corpus that names users; the guarantee then protects a user, and
            training.batch_size counts users).
        max_utterances_per_user: with unit user, the largest number of a user's utterances that
            take part in a step; they are drawn secretly.
        micro_batches_per_worker: k; edp_sgd clips k micro-batches on each worker, so that Algorithm
            1 has N = workers · k.
        variant: published (Algorithm 1 to the letter, edp_sgd only) or calibrated (the same effort
            with an exact ε).
        clipping: loop (one backward pass per unit; the default of edp_sgd), ghost (the norms and
            the sum of many units from one pass; the default of dp_sgd) or ghost_bfloat16 (the same,
            with the products of dense layers rounded to bfloat16, where the processor has it; its
            report says what no ε covers then).
        chunk_size: number of utterances that ghost clipping processes at once, or fewer if the tags
            are so many (1,000, say) that these need more than about a gigabyte; affects memory and
            speed, not privacy.
        noise_multiplier: z₀; 0 adds no noise. The default (null) is 1, or the value found for
            target_epsilon.
        noise: how it is drawn.
        max_grad_norm: C, the Euclidean norm to which the gradient of a unit is clipped.
        clip_rule: abadi (longer gradients are scaled to C) or automatic (all are scaled to nearly
            C, so that C and the learning rate are one setting); the sensitivity is C either way.
        decay: d(t), by epoch.
        layer_scales: where the scales α of the layers come from.
        layer_scales_unit: largest (α is divided by its largest, so that max α = 1) or norm (α is
            taken as it is found: with first_batch the gradient norms themselves, which is how the
            paper may be read). Under the published variant the noise ignores α, and ε follows.
        scale_release: with `layer_scales: dp_release`, how α is released, and at which cost.
        sampler: shuffle (each record at most once per epoch) or poisson (each record in each step
            with the same probability, secretly).
        adjacency: replace_one or zero_out: which corpora are neighbours.
        target_epsilon: the ε that holds for the whole plan; z₀ is found for it before training, on
            the safe side. Excludes noise_multiplier.
        max_epsilon: the run ends before the step that would make ε exceed it.
        corpus_budget: the ε that an utterance (or user) of the training part may lose in this run
            and in all others in the same folder together, at this run's δ; a run that would exceed
            it is refused before its first release. `edp-mx budget` shows it.
        assume_public: inputs from the training part that are public nevertheless: vocabulary,
            lengths, layer_scales or start (the run of `model.start_from`). Every report repeats
            them. Otherwise a target or a budget is refused if such an input makes ε infinite.
        delta: δ; the default is 1/(2n).
        delta_mode: default, or paper (5e-4 for public corpora, 5e-5 for the internal ones).
        insecure_fixed_seed: makes the noise repeatable, for tests; there is then no privacy.
    """

    mechanism: str = setting("edp_sgd", one_of=("none", *MECHANISMS))
    unit: Optional[str] = None
    max_utterances_per_user: int = setting(16, at_least=1, at_most=MOST_AT_ONCE)
    micro_batches_per_worker: int = setting(1, at_least=1, at_most=MOST_AT_ONCE)
    variant: str = setting("calibrated", one_of=VARIANTS)
    clipping: Optional[str] = setting(None, one_of=tuple(CLIPPINGS))
    chunk_size: int = setting(64, at_least=1, at_most=MOST_AT_ONCE)
    noise_multiplier: Optional[float] = setting(None, at_least=0, at_most=MOST_NORM)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    max_grad_norm: float = setting(1.0, at_least=LEAST_NORM, at_most=MOST_NORM)
    clip_rule: str = setting("abadi", one_of=tuple(CLIP_RULES))
    decay: Decay = field(default_factory=Decay)
    layer_scales: str = setting("ones", one_of=SCALES_SOURCES)
    layer_scales_unit: str = setting("largest", one_of=SCALES_UNITS)
    scale_release: ScaleRelease = field(default_factory=ScaleRelease)
    sampler: str = setting("shuffle", one_of=tuple(SAMPLERS))
    adjacency: str = setting("replace_one", one_of=ADJACENCIES)
    target_epsilon: Optional[float] = setting(None, above=0)
    max_epsilon: Optional[float] = setting(None, above=0)
    corpus_budget: Optional[float] = setting(None, above=0)
    assume_public: Tuple[str, ...] = setting((), one_of=tuple(PRIVATE_INPUTS))
    delta: Optional[float] = setting(None, at_least=LEAST_DELTA, below=1)
    delta_mode: str = setting("default", one_of=("default", "paper"))
    insecure_fixed_seed: Optional[int] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unit", unit_of(self.mechanism, self.unit))
        if self.clipping is None:
            object.__setattr__(
                self, "clipping", "loop" if UNITS[self.unit or ""].is_mean else "ghost"
            )
        self._check_mechanism()
        self._check_noise()
        if self.noise_multiplier is None and self.target_epsilon is None:
            object.__setattr__(self, "noise_multiplier", 1.0)

    def _check_mechanism(self) -> None:
        """Refuse settings that do not fit the mechanism or the unit."""
        unit = UNITS[self.unit or ""]
        unit.check_variant(self.variant, self.micro_batches_per_worker)
        if unit.is_user and self.layer_scales == "dp_release":
            raise SettingError(
                "layer_scales",
                "must be ones, sqrt_dim or public_batch with unit user: dp_release needs disjoint "
                "micro-batches, and a user may be in several of them",
            )

        if (self.variant, self.layer_scales, self.layer_scales_unit) == _PRIVATE_PRICE:
            raise SettingError(
                "layer_scales_unit",
                "must be largest with variant published and layer_scales dp_release: what a step "
                "costs would be read from private data",
            )

    def _check_noise(self) -> None:
        """Refuse settings of the noise, of ε and of δ that exclude each other."""
        if self.noise_multiplier is not None and self.target_epsilon is not None:
            raise UserError("noise_multiplier and target_epsilon exclude each other; leave one out")
        if self.delta is not None and self.delta_mode == "paper":
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")
        for key in ("target_epsilon", "max_epsilon", "corpus_budget"):
            if self.mechanism == "none" and getattr(self, key) is not None:
                raise SettingError(
                    key,
                    "must be left out, because ε is infinite without a privacy mechanism; or "
                    "choose mechanism edp_sgd or dp_sgd",
                )
