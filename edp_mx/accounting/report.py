"""What a run promises to one utterance, said in full: PRIVACY, "The report object"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release

UNIT = "one utterance"


@dataclass(frozen=True)
class Guarantee:
    """The report; made by `guarantee.guarantee`.

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


def _say(bound: Bound) -> str:
    """One ε in words."""
    if bound.reasons:
        return f"infinite: {'; '.join(bound.reasons)}"
    how = "" if bound.rho is None else " conversion"
    return f"{bound.epsilon} ({bound.accountant}, {bound.conversion}{how})"
