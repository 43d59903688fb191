"""The keys below `privacy:`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from edp_mx.accounting.decay import Decay
from edp_mx.errors import UserError
from edp_mx.privacy.layer_scales import SOURCES

MECHANISMS = ("none", "edp_sgd")


@dataclass(frozen=True)
class PrivacyConfig:
    """How the gradients are made private.

    Attributes:
        mechanism: none (the paper's SGD) or edp_sgd (Algorithm 1).
        variant: published (Algorithm 1 to the letter) or calibrated (same effort, exact ε).
        noise_multiplier: z₀; 0 adds no noise.
        max_grad_norm: C.
        decay: d(t), by epoch.
        layer_scales: where α comes from.
        adjacency: replace_one or zero_out; who counts as a neighbour.
        delta: δ; left out it is 1/(2n).
        delta_mode: default, or paper (5e-4 for public corpora, 5e-5 for the internal ones).
        insecure_fixed_seed: repeatable noise, for tests: no privacy at all.
    """

    mechanism: str = "edp_sgd"
    variant: str = "calibrated"
    noise_multiplier: float = 1.0
    max_grad_norm: float = 1.0
    decay: Decay = field(default_factory=Decay)
    layer_scales: str = "ones"
    adjacency: str = "replace_one"
    delta: Optional[float] = None
    delta_mode: str = "default"
    insecure_fixed_seed: Optional[int] = None

    def __post_init__(self) -> None:
        choices = {
            "mechanism": MECHANISMS,
            "variant": ("published", "calibrated"),
            "layer_scales": tuple(SOURCES),
            "adjacency": ("replace_one", "zero_out"),
            "delta_mode": ("default", "paper"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise UserError(
                    f"{key} is {getattr(self, key)!r}; choose one of {', '.join(allowed)}"
                )
        if not 0 <= self.noise_multiplier < float("inf"):
            raise UserError(f"noise_multiplier is {self.noise_multiplier}; it must be 0 or more")
        if not 0 < self.max_grad_norm < float("inf"):
            raise UserError(f"max_grad_norm is {self.max_grad_norm}; it must be above 0")
        if self.delta is not None and not 0 < self.delta < 1:
            raise UserError(f"delta is {self.delta}; it must lie between 0 and 1")
        if self.delta is not None and self.delta_mode == "paper":
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")
