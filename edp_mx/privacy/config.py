"""The keys below `privacy:`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import ADJACENCIES, NO_PUBLISHED_DP_SGD, SAMPLERS, VARIANTS
from edp_mx.errors import UserError
from edp_mx.privacy.layer_scales import SOURCES
from edp_mx.privacy.released_scales import ScaleRelease

MECHANISMS = ("none", "edp_sgd", "dp_sgd")
PER_EXAMPLE = ("ghost", "ghost_two_passes", "loop")


@dataclass(frozen=True)
class PrivacyConfig:
    """How the gradients are made private.

    Attributes:
        mechanism: none (the paper's SGD), edp_sgd (Algorithm 1: the mean gradient of a worker's
            micro-batch is clipped) or dp_sgd (each utterance's own gradient is).
        variant: published (Algorithm 1 to the letter, edp_sgd only) or calibrated (same effort,
            exact ε).
        per_example: how dp_sgd clips each gradient: ghost (by norms and one pass),
            ghost_two_passes (its cross-check), or loop (one utterance at a time, as the paper).
        chunk_size: utterances whose gradients ghost takes at once: memory and speed, not privacy.
        noise_multiplier: z₀; 0 adds no noise; left out (null) it is 1, or what target_epsilon asks.
        max_grad_norm: C.
        decay: d(t), by epoch.
        layer_scales: where α comes from.
        scale_release: how α is released and what that costs, with `layer_scales: dp_release`.
        sampler: shuffle (each record at most once an epoch), or poisson (each record in each step
            with the same probability, secretly).
        adjacency: replace_one or zero_out; who counts as a neighbour.
        target_epsilon: ε that holds for the whole plan, from which z₀ is found before training (on
            the safe side); excludes noise_multiplier.
        max_epsilon: the run ends before the step with which ε would exceed it.
        delta: δ; left out it is 1/(2n).
        delta_mode: default, or paper (5e-4 for public corpora, 5e-5 for the internal ones).
        insecure_fixed_seed: repeatable noise, for tests: no privacy at all.
    """

    mechanism: str = "edp_sgd"
    variant: str = "calibrated"
    per_example: str = "ghost"
    chunk_size: int = 64
    noise_multiplier: Optional[float] = None
    max_grad_norm: float = 1.0
    decay: Decay = field(default_factory=Decay)
    layer_scales: str = "ones"
    scale_release: ScaleRelease = field(default_factory=ScaleRelease)
    sampler: str = "shuffle"
    adjacency: str = "replace_one"
    target_epsilon: Optional[float] = None
    max_epsilon: Optional[float] = None
    delta: Optional[float] = None
    delta_mode: str = "default"
    insecure_fixed_seed: Optional[int] = None

    def __post_init__(self) -> None:
        choices = {
            "mechanism": MECHANISMS,
            "variant": VARIANTS,
            "per_example": PER_EXAMPLE,
            "layer_scales": tuple(SOURCES),
            "sampler": SAMPLERS,
            "adjacency": ADJACENCIES,
            "delta_mode": ("default", "paper"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise UserError(
                    f"{key} is {getattr(self, key)!r}; choose one of {', '.join(allowed)}"
                )
        if self.mechanism == "dp_sgd" and self.variant == "published":
            raise UserError(NO_PUBLISHED_DP_SGD)
        if self.chunk_size < 1:
            raise UserError(f"chunk_size is {self.chunk_size}; it must be 1 or more")
        if self.noise_multiplier is not None and self.target_epsilon is not None:
            raise UserError("noise_multiplier and target_epsilon exclude each other; leave one out")
        if self.noise_multiplier is None and self.target_epsilon is None:
            object.__setattr__(self, "noise_multiplier", 1.0)
        z = self.noise_multiplier
        if z is not None and not 0 <= z < float("inf"):
            raise UserError(f"noise_multiplier is {z}; it must be 0 or more")
        for key in ("target_epsilon", "max_epsilon"):
            value = getattr(self, key)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{key} is {value}; it must be above 0")
        if not 0 < self.max_grad_norm < float("inf"):
            raise UserError(f"max_grad_norm is {self.max_grad_norm}; it must be above 0")
        if self.delta is not None and not 0 < self.delta < 1:
            raise UserError(f"delta is {self.delta}; it must lie between 0 and 1")
        if self.delta is not None and self.delta_mode == "paper":
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")

    @property
    def clips(self) -> str:
        """What is held to C: micro_batch or example; see `accounting.release.Release`."""
        return "example" if self.mechanism == "dp_sgd" else "micro_batch"
