"""What a step releases: how far one utterance can move it, and how much noise it carries."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Dict, Sequence, Tuple

from edp_mx.errors import UserError

ADJACENCIES = ("replace_one", "zero_out")
VARIANTS = ("published", "calibrated")
SAMPLERS = ("shuffle", "poisson")
CLIPS = ("micro_batch", "example")
NO_PUBLISHED_DP_SGD = (
    "variant is published, which is the noise of Algorithm 1 (eDP-SGD) and none for DP-SGD; use "
    "variant: calibrated with mechanism: dp_sgd"
)


@dataclass(frozen=True, init=False)
class Release:
    """One step of Algorithm 1 or of DP-SGD, as seen by whoever gets the aggregate (1/N) Σ v_i.

    The mechanism takes its noise from here and the accountant its multiplier, so that the two
    cannot disagree.

    Attributes:
        num_workers: N; the draws of the workers are independent.
        micro_batch_size: |M|, by which one worker divides its sum of gradients, before it clips
            (micro_batch) or after it has clipped each (example): how many examples that are
            (shuffle), or how many are expected (poisson; need not be whole).
        max_grad_norm: C.
        layer_scales: α, one a layer, as the mechanism uses them (not normalised here).
        adjacency: replace_one (an utterance becomes another) or zero_out (its gradient becomes 0).
        variant: published (noise C z / N after the rescaling, the same in every layer) or
            calibrated (noise κ C z / √N before it).
        sampler: shuffle (each micro-batch has |M| examples) or poisson (as many as are drawn).
        clips: what is held to C: micro_batch (its mean gradient, Algorithm 1) or example (each
            example's own gradient, DP-SGD; calibrated only).

    Raises:
        UserError: an unknown name, an impossible number, or a published variant of DP-SGD.

    Shapes: whatever is "one a layer" has L = len(layer_scales) entries.

    Units: `..._stddev` and `aggregate_sensitivity` in those of the gradient; multipliers are pure.

    Guarantee: with noise multiplier z a step costs zCDP ρ = 1 / (2 z_eff²), z_eff being
    `effective_noise_multiplier(z)`; for the calibrated variant z_eff = z. For `clips` example this
    asks that an example's gradient depends on the weights and that example alone (and on masks of
    dropout that nobody knows), and that what it is divided by is not how many were drawn.

    Source: eDP-SGD, Algorithm 1; PRIVACY, "What Algorithm 1 releases".

    Departs: the paper counts z itself, which holds only for independent clipping of single
    examples (κ = 1), max α = 1 and one worker.

    Example:
        >>> release = Release(num_workers=4, micro_batch_size=8, max_grad_norm=1.0,
        ...     layer_scales=(1.0, 0.5), adjacency="replace_one", variant="published")
        >>> release.kappa, release.effective_noise_multiplier(2.0)
        (2.0, 0.5)
        >>> release.worker_noise_stddev(2.0)
        (0.5, 0.5)
        >>> exact = Release(num_workers=4, micro_batch_size=8, max_grad_norm=1.0,
        ...     layer_scales=(1.0,), adjacency="zero_out", variant="calibrated", clips="example")
        >>> exact.kappa, exact.aggregate_sensitivity == 1 / 32, exact.aggregate_noise_stddev(2.0)
        (1.0, True, (0.0625,))
    """

    num_workers: int
    micro_batch_size: float
    max_grad_norm: float
    layer_scales: Tuple[float, ...]
    adjacency: str
    variant: str
    sampler: str = "shuffle"
    clips: str = "micro_batch"

    def __init__(
        self,
        *,
        num_workers: int,
        micro_batch_size: float,
        max_grad_norm: float,
        layer_scales: Sequence[float],
        adjacency: str,
        variant: str,
        sampler: str = "shuffle",
        clips: str = "micro_batch",
    ) -> None:
        values = {
            "num_workers": num_workers,
            "micro_batch_size": micro_batch_size,
            "max_grad_norm": float(max_grad_norm),
            "layer_scales": tuple(float(scale) for scale in layer_scales),
            "adjacency": adjacency,
            "variant": variant,
            "sampler": sampler,
            "clips": clips,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuses what no run can have."""
        choices = {
            "adjacency": ADJACENCIES,
            "variant": VARIANTS,
            "sampler": SAMPLERS,
            "clips": CLIPS,
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                given = getattr(self, name)
                raise UserError(f"{name} is {given!r}; choose one of {', '.join(allowed)}")
        if self.clips == "example" and self.variant == "published":
            raise UserError(NO_PUBLISHED_DP_SGD)
        whole: Dict[str, float] = {"num_workers": self.num_workers}
        if self.sampler == "shuffle":
            whole["micro_batch_size"] = self.micro_batch_size
        for name, value in whole.items():
            if not (1 <= value < math.inf and value == int(value)):
                raise UserError(f"{name} is {value}; it must be a whole number from 1")
        if not 0 < self.micro_batch_size < math.inf:
            raise UserError(
                f"micro_batch_size is {self.micro_batch_size}; it must be finite and above 0"
            )
        if not 0 < self.max_grad_norm < math.inf:
            raise UserError(f"max_grad_norm is {self.max_grad_norm}; it must be finite and above 0")
        if not self.layer_scales:
            raise UserError("layer_scales is empty; give one scale a layer")
        for scale in self.layer_scales:
            if not 0 < scale < math.inf:
                raise UserError(f"layer_scales holds {scale}; all must be finite and above 0")

    @property
    def kappa(self) -> float:
        """How many clipping norms C one utterance can move what one worker clips.

        Where each example is clipped (DP-SGD): 1 under zero_out, its own clipped gradient; 2 under
        replace_one, which takes one away and adds another; whatever the sampler and |M|.

        Where a micro-batch is: 2 whenever the mean of several examples is clipped, since one
        example can turn it round; 2 for replace_one always; 1 only for single examples whose
        gradient becomes 0. 2 for Poisson always, even where one example is expected: beside it
        others may be drawn. (With these others fixed, the utterance moves the clipped sum by κ C at
        most, so that a step is a mixture of Gaussians κ C apart, whatever the others are.)
        """
        if self.clips == "example":
            return 1.0 if self.adjacency == "zero_out" else 2.0
        is_single = self.sampler == "shuffle" and self.micro_batch_size == 1
        return 1.0 if is_single and self.adjacency == "zero_out" else 2.0

    @property
    def aggregate_sensitivity(self) -> float:
        """The largest ‖change‖₂ of the released aggregate: κ C max α / N, by example / (N |M|)."""
        return self._moved * max(self.layer_scales) / self.num_workers

    def worker_noise_stddev(self, noise_multiplier: float) -> Tuple[float, ...]:
        """What one worker adds to a coordinate of v_i, before the mean over workers; one a layer.

        Published: C z / N in all layers. Calibrated: α_k κ C z / √N, by example / |M|.
        """
        scaled = self.max_grad_norm * noise_multiplier
        if self.variant == "published":
            return tuple(scaled / self.num_workers for _ in self.layer_scales)
        scaled *= self.kappa / math.sqrt(self.num_workers)
        if self.clips == "example":
            scaled /= self.micro_batch_size
        return tuple(scale * scaled for scale in self.layer_scales)

    def aggregate_noise_stddev(self, noise_multiplier: float) -> Tuple[float, ...]:
        """The noise on a coordinate of the aggregate, one a layer: that of one worker / √N."""
        root = math.sqrt(self.num_workers)
        return tuple(stddev / root for stddev in self.worker_noise_stddev(noise_multiplier))

    def effective_noise_multiplier(self, noise_multiplier: float) -> float:
        """z_eff: noise over sensitivity of the aggregate, in the layer where it is smallest.

        The only number that an accountant is given. z for calibrated, z / (κ max α √N) for
        published.
        """
        moved = self._moved / self.num_workers
        return self._smallest_ratio(self.aggregate_noise_stddev(noise_multiplier), moved)

    def worker_noise_multiplier(self, noise_multiplier: float) -> float:
        """As `effective_noise_multiplier`, for someone who sees the message of a single worker."""
        return self._smallest_ratio(self.worker_noise_stddev(noise_multiplier), self._moved)

    def relative_noise(self, noise_multiplier: float) -> float:
        """A worker's noise over the largest gradient C α_k that it is added to, where smallest."""
        return self._smallest_ratio(self.worker_noise_stddev(noise_multiplier), self.max_grad_norm)

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON for the head of a ledger; `Release(**values)` reads it.

        `clips` is left out where it is micro_batch, as in ledgers from before DP-SGD.
        """
        values = asdict(self)
        if self.clips == "micro_batch":
            del values["clips"]
        return values

    @property
    def _moved(self) -> float:
        """How far one utterance moves one worker's mean, in the scaled space."""
        moved = self.kappa * self.max_grad_norm
        return moved / self.micro_batch_size if self.clips == "example" else moved

    def _smallest_ratio(self, stddevs: Sequence[float], moved: float) -> float:
        """min_k stddev_k / (moved · α_k): the change lies in the ellipsoid with these half-axes."""
        return min(s / (moved * scale) for s, scale in zip(stddevs, self.layer_scales))
