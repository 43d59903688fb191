"""The keys below `privacy:`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from edp_mx.accounting.choices import (
    ADJACENCIES,
    CLIPPINGS,
    NO_PUBLISHED_DP_SGD,
    SAMPLERS,
    VARIANTS,
    unit_of,
)
from edp_mx.accounting.coverage import PRIVATE_INPUTS
from edp_mx.accounting.decay import Decay
from edp_mx.errors import UserError
from edp_mx.privacy.layer_scales import SOURCES
from edp_mx.privacy.released_scales import ScaleRelease

MECHANISMS = ("none", "edp_sgd", "dp_sgd")
_OLD_CLIPPINGS = {"ghost_two_passes": "ghost"}  # of configurations that edp_mx 0.1 wrote


@dataclass(frozen=True)
class PrivacyConfig:
    """How the gradients are made private.

    Attributes:
        mechanism: none (the paper's SGD), edp_sgd (Algorithm 1: the mean gradient of a micro-batch
            is clipped) or dp_sgd (each utterance's, or user's, own gradient is).
        unit: what is clipped: micro_batch (edp_sgd), utterance (the default of dp_sgd) or user
            (dp_sgd on a corpus that names users: the guarantee is then a user's, and
            training.batch_size counts users).
        max_utterances_per_user: with unit user, how many of a user's utterances take part in a
            step at most; they are drawn secretly.
        micro_batches_per_worker: k; edp_sgd clips k micro-batches on each worker, so that Algorithm
            1 has N = workers · k.
        variant: published (Algorithm 1 to the letter, edp_sgd only) or calibrated (same effort,
            exact ε).
        clipping: loop (one backward pass per unit; the default of edp_sgd) or ghost (norms and sum
            of many units from one pass; the default of dp_sgd).
        chunk_size: utterances whose gradients ghost takes at once: memory and speed, not privacy.
        noise_multiplier: z₀; 0 adds no noise; left out (null) it is 1, or what target_epsilon asks.
        max_grad_norm: C.
        decay: d(t), by epoch.
        layer_scales: where α comes from.
        scale_release: how α is released and what that costs, with `layer_scales: dp_release`.
        sampler: shuffle (each record at most once per epoch), or poisson (each record in each step
            with the same probability, secretly).
        adjacency: replace_one or zero_out; who counts as a neighbour.
        target_epsilon: ε that holds for the whole plan, from which z₀ is found before training (on
            the safe side); excludes noise_multiplier.
        max_epsilon: the run ends before the step with which ε would exceed it.
        assume_public: what entered from the training part and is public nevertheless: vocabulary,
            lengths or layer_scales. Every report repeats it. Without it a target or a budget is
            refused where such an input makes ε infinite.
        delta: δ; left out it is 1/(2n).
        delta_mode: default, or paper (5e-4 for public corpora, 5e-5 for the internal ones).
        insecure_fixed_seed: repeatable noise, for tests: no privacy at all.
    """

    mechanism: str = "edp_sgd"
    unit: Optional[str] = None
    max_utterances_per_user: int = 16
    micro_batches_per_worker: int = 1
    variant: str = "calibrated"
    clipping: Optional[str] = None
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
    assume_public: Tuple[str, ...] = ()
    delta: Optional[float] = None
    delta_mode: str = "default"
    insecure_fixed_seed: Optional[int] = None

    @staticmethod
    def upgrade(values: Mapping[str, Any]) -> Dict[str, Any]:
        """Keys as they are called now; edp_mx 0.1 called clipping per_example."""
        given = dict(values)
        if "per_example" in given and "clipping" not in given:
            old = given.pop("per_example")
            given["clipping"] = _OLD_CLIPPINGS.get(old, old)
        return given

    def __post_init__(self) -> None:
        self._settle_defaults()
        self._check_choices()
        self._check_numbers()
        if self.mechanism == "dp_sgd" and self.variant == "published":
            raise UserError(NO_PUBLISHED_DP_SGD)
        if self.noise_multiplier is not None and self.target_epsilon is not None:
            raise UserError("noise_multiplier and target_epsilon exclude each other; leave one out")
        if self.noise_multiplier is None and self.target_epsilon is None:
            object.__setattr__(self, "noise_multiplier", 1.0)
        for key in ("target_epsilon", "max_epsilon"):
            if self.mechanism == "none" and getattr(self, key) is not None:
                raise UserError(
                    f"{key}: without a privacy mechanism epsilon is infinite; choose mechanism "
                    f"edp_sgd or dp_sgd, or leave {key} out"
                )
        if self.delta is not None and self.delta_mode == "paper":
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")

    def _settle_defaults(self) -> None:
        """What follows from the mechanism where it was left out."""
        object.__setattr__(self, "unit", unit_of(self.mechanism, self.unit))
        if self.clipping is None:
            object.__setattr__(self, "clipping", "ghost" if self.mechanism == "dp_sgd" else "loop")

    def _check_choices(self) -> None:
        choices = {
            "mechanism": MECHANISMS,
            "variant": VARIANTS,
            "clipping": CLIPPINGS,
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
        for name in self.assume_public:
            if name not in PRIVATE_INPUTS:
                raise UserError(
                    f"assume_public names {name!r}; choose from {', '.join(PRIVATE_INPUTS)}"
                )

        if self.unit == "user" and self.layer_scales == "dp_release":
            raise UserError(
                "layer_scales: dp_release takes disjoint micro-batches, and a user may be in "
                "several of them; with unit user choose ones, sqrt_dim or public_batch"
            )

    def _check_numbers(self) -> None:
        for key in ("chunk_size", "micro_batches_per_worker", "max_utterances_per_user"):
            if getattr(self, key) < 1:
                raise UserError(f"{key} is {getattr(self, key)}; it must be 1 or more")
        if self.mechanism == "dp_sgd" and self.micro_batches_per_worker != 1:
            raise UserError(
                f"micro_batches_per_worker is {self.micro_batches_per_worker}, but dp_sgd clips "
                f"each {self.unit}; leave it at 1"
            )
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
