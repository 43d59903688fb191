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
from edp_mx.runtime.settings import Settings, setting

MECHANISMS = ("none", "edp_sgd", "dp_sgd")
_OLD_CLIPPINGS = {"ghost_two_passes": "ghost"}  # of configurations that edp_mx 0.1 wrote


@dataclass(frozen=True)
class PrivacyConfig(Settings):
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

    mechanism: str = setting("edp_sgd", one_of=MECHANISMS)
    unit: Optional[str] = None
    max_utterances_per_user: int = setting(16, at_least=1)
    micro_batches_per_worker: int = setting(1, at_least=1)
    variant: str = setting("calibrated", one_of=VARIANTS)
    clipping: Optional[str] = setting(None, one_of=CLIPPINGS)
    chunk_size: int = setting(64, at_least=1)
    noise_multiplier: Optional[float] = setting(None, at_least=0)
    max_grad_norm: float = setting(1.0, above=0)
    decay: Decay = field(default_factory=Decay)
    layer_scales: str = setting("ones", one_of=tuple(SOURCES))
    scale_release: ScaleRelease = field(default_factory=ScaleRelease)
    sampler: str = setting("shuffle", one_of=SAMPLERS)
    adjacency: str = setting("replace_one", one_of=ADJACENCIES)
    target_epsilon: Optional[float] = setting(None, above=0)
    max_epsilon: Optional[float] = setting(None, above=0)
    assume_public: Tuple[str, ...] = setting((), one_of=tuple(PRIVATE_INPUTS))
    delta: Optional[float] = setting(None, above=0, below=1)
    delta_mode: str = setting("default", one_of=("default", "paper"))
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
        super().__post_init__()
        object.__setattr__(self, "unit", unit_of(self.mechanism, self.unit))
        if self.clipping is None:
            object.__setattr__(self, "clipping", "ghost" if self.mechanism == "dp_sgd" else "loop")
        self._check_mechanism()
        self._check_noise()
        if self.noise_multiplier is None and self.target_epsilon is None:
            object.__setattr__(self, "noise_multiplier", 1.0)

    def _check_mechanism(self) -> None:
        """Refuse settings that do not fit the mechanism or the unit."""
        if self.mechanism == "dp_sgd" and self.variant == "published":
            raise UserError(NO_PUBLISHED_DP_SGD)
        if self.mechanism == "dp_sgd" and self.micro_batches_per_worker != 1:
            raise UserError(
                f"micro_batches_per_worker is {self.micro_batches_per_worker}, but dp_sgd clips "
                f"each {self.unit}; leave it at 1"
            )
        if self.unit == "user" and self.layer_scales == "dp_release":
            raise UserError(
                "layer_scales: dp_release needs disjoint micro-batches, and a user may be in "
                "several of them; with unit user choose ones, sqrt_dim or public_batch"
            )

    def _check_noise(self) -> None:
        """Refuse settings of the noise, of ε and of δ that exclude each other."""
        if self.noise_multiplier is not None and self.target_epsilon is not None:
            raise UserError("noise_multiplier and target_epsilon exclude each other; leave one out")
        if self.delta is not None and self.delta_mode == "paper":
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")
        for key in ("target_epsilon", "max_epsilon"):
            if self.mechanism == "none" and getattr(self, key) is not None:
                raise UserError(
                    f"{key}: without a privacy mechanism epsilon is infinite; choose mechanism "
                    f"edp_sgd or dp_sgd, or leave {key} out"
                )
