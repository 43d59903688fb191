"""What a step releases: how far one record can move it, and how much noise it carries."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from edp_mx.accounting.events import SAMPLERS as SAMPLERS
from edp_mx.accounting.events import Event
from edp_mx.errors import UserError

ADJACENCIES = ("replace_one", "zero_out")
VARIANTS = ("published", "calibrated")
UNITS = ("micro_batch", "utterance", "user")
UNITS_OF = {"edp_sgd": ("micro_batch",), "dp_sgd": ("utterance", "user")}  # the default first
CLIPPINGS = ("loop", "ghost")  # how a unit's gradient is had; ε is the same
NO_PUBLISHED_DP_SGD = (
    "variant is published, which is the noise of Algorithm 1 (eDP-SGD) and none for DP-SGD; use "
    "variant: calibrated with mechanism: dp_sgd"
)
_OLD_UNITS = {"micro_batch": "micro_batch", "example": "utterance"}  # `clips` in ledgers of 0.1


def unit_of(mechanism: str, unit: Optional[str]) -> str:
    """What a mechanism clips: as asked for, or its default.

    Raises:
        UserError: a unit that the mechanism does not clip.
    """
    units = UNITS_OF.get(mechanism, UNITS[:1])
    if unit is not None and unit not in units:
        raise UserError(
            f"unit is {unit}, but mechanism {mechanism} clips each {' or '.join(units)}: edp_sgd "
            "goes with micro_batch, dp_sgd with utterance or user"
        )
    return unit or units[0]


@dataclass(frozen=True)
class Release:
    """One step of Algorithm 1 or of DP-SGD, as seen by whoever gets the aggregate.

    Every worker clips units, sums them, divides by the public number of its units, adds its noise
    and sends the result; the mean over the workers is released. The mechanism takes its noise from
    here and the accountant its multiplier, so that the two cannot disagree.

    Attributes:
        unit: what is clipped to C: micro_batch (the mean gradient of a micro-batch, Algorithm 1),
            utterance (each utterance's own gradient, DP-SGD) or user (the sum over a user's
            utterances). Calibrated only, but for micro_batch.
        num_workers: processes that draw their noise independently and send one message each.
        micro_batch_size: |M|: the utterances of one micro-batch (unit micro_batch); or how many
            units one worker has in a step, by which it divides its sum (utterance, user). The
            expected number under poisson; it need not be whole.
        max_grad_norm: C.
        adjacency: replace_one (a record becomes another) or zero_out (its gradient becomes 0). The
            record is an utterance, or a user where the unit is one.
        variant: published (noise C z / N on each micro-batch after the rescaling, the same in
            every layer) or calibrated (noise in proportion to what one record can move).
        sampler: shuffle (each micro-batch has |M| records) or poisson (as many as are drawn).
        sample_rate: q, the probability with which a record is in a step; 1 for shuffle.
        layer_scales: α, one per layer, as the mechanism uses them (not normalised here); None as
            long as they are not known, which a run's are not before they are released: whatever
            they become, the largest is 1.
        micro_batches_per_worker: k, so that Algorithm 1 has N = workers · k; 1 for other units.

    Raises:
        UserError: an unknown name, an impossible number, or a published variant of DP-SGD.

    Shapes: whatever is "per layer" has L = len(layer_scales) entries.

    Units: `..._stddev` and `aggregate_sensitivity` in those of the gradient; multipliers are pure.

    Guarantee: with noise multiplier z a step costs zCDP ρ = 1 / (2 z_eff²), z_eff being
    `effective_noise_multiplier(z)`; for the calibrated variant z_eff = z. For utterances and users
    this asks that a unit's gradient depends on the weights and that unit alone (and on dropout
    masks that nobody knows), and that the divisor is not how many were drawn.

    Source: eDP-SGD, Algorithm 1; docs/privacy.md, sections 1 to 3 and 8.

    Departs: the paper counts z itself, which holds only for independent clipping of single
    utterances (κ = 1), max α = 1 and one micro-batch per step.

    Example:
        >>> release = Release(unit="micro_batch", num_workers=4, micro_batch_size=8,
        ...     max_grad_norm=1.0, layer_scales=(1.0, 0.5), adjacency="replace_one",
        ...     variant="published")
        >>> release.kappa, release.effective_noise_multiplier(2.0)
        (2.0, 0.5)
        >>> release.worker_noise_stddev(2.0)
        (0.5, 0.5)
        >>> exact = replace(release, unit="utterance", adjacency="zero_out", variant="calibrated",
        ...     layer_scales=(1.0,))
        >>> exact.kappa, exact.aggregate_sensitivity == 1 / 32, exact.aggregate_noise_stddev(2.0)
        (1.0, True, (0.0625,))
    """

    unit: str
    num_workers: int
    micro_batch_size: float
    max_grad_norm: float
    adjacency: str
    variant: str
    sampler: str = "shuffle"
    sample_rate: float = 1.0
    layer_scales: Optional[Tuple[float, ...]] = None
    micro_batches_per_worker: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_grad_norm", float(self.max_grad_norm))
        if self.layer_scales is not None:
            object.__setattr__(self, "layer_scales", tuple(map(float, self.layer_scales)))
        self._check_names()
        self._check_numbers()

    def _check_names(self) -> None:
        """Refuses what is none of the choices."""
        choices = {"unit": UNITS, "adjacency": ADJACENCIES, "variant": VARIANTS,
                   "sampler": SAMPLERS}  # fmt: skip
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                given = getattr(self, name)
                raise UserError(f"{name} is {given!r}; choose one of {', '.join(allowed)}")
        if self.unit != "micro_batch" and self.variant == "published":
            raise UserError(NO_PUBLISHED_DP_SGD)

    def _check_numbers(self) -> None:
        """Refuses what no run can have; NaN too."""
        whole = ["num_workers", "micro_batches_per_worker"]
        for name in whole + ["micro_batch_size"] * (self.sampler == "shuffle"):
            value = getattr(self, name)
            if not (1 <= value < math.inf and value == int(value)):
                raise UserError(f"{name} is {value}; it must be a whole number from 1")
        if self.unit != "micro_batch" and self.micro_batches_per_worker != 1:
            raise UserError(
                f"micro_batches_per_worker is {self.micro_batches_per_worker}, but each "
                f"{self.unit} is clipped by itself; leave it at 1"
            )
        for name in ("micro_batch_size", "max_grad_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} is {getattr(self, name)}; it must be finite and above 0")
        if not 0 <= self.sample_rate <= 1:
            raise UserError(f"sample_rate is {self.sample_rate}; it must lie between 0 and 1")
        if self.layer_scales is not None and not self.layer_scales:
            raise UserError("layer_scales is empty; give one scale per layer")
        for scale in self.layer_scales or ():
            if not 0 < scale < math.inf:
                raise UserError(f"layer_scales holds {scale}; all must be finite and above 0")

    @property
    def num_micro_batches(self) -> int:
        """N of Algorithm 1: micro-batches per step, over all workers."""
        return self.num_workers * self.micro_batches_per_worker

    @property
    def units_per_worker(self) -> float:
        """The public number by which one worker divides its sum of clipped units."""
        return (
            self.micro_batches_per_worker if self.unit == "micro_batch" else self.micro_batch_size
        )

    @property
    def batch_size(self) -> float:
        """B: records per step over all workers; the expected number under poisson."""
        return self.num_micro_batches * self.micro_batch_size

    @property
    def record(self) -> str:
        """What the guarantee speaks of: utterance or user."""
        return "user" if self.unit == "user" else "utterance"

    @property
    def kappa(self) -> float:
        """How many clipping norms C one record can move one worker's clipped sum.

        Where utterances or users are clipped (DP-SGD): 1 under zero_out, its own clipped gradient;
        2 under replace_one, which takes one away and adds another. Where a micro-batch is: 2
        whenever the mean of several is clipped, since one utterance can turn it round; 2 for
        replace_one always; 1 only for single utterances whose gradient becomes 0. 2 for Poisson
        always, even where one utterance is expected: beside it others may be drawn. (With these
        others fixed, the utterance moves the clipped sum by κ C at most, so that a step is a
        mixture of Gaussians κ C apart, whatever the others are.)
        """
        if self.unit != "micro_batch":
            return 1.0 if self.adjacency == "zero_out" else 2.0
        is_single = self.sampler == "shuffle" and self.micro_batch_size == 1
        return 1.0 if is_single and self.adjacency == "zero_out" else 2.0

    @property
    def neighbours(self) -> str:
        """What one record can do to a step, in the terms of `events.Composition`.

        Where each utterance or user is clipped, two records move the sum by C each, whoever else
        is drawn: that is `replace_one`. Where a mean of several is, all lies in one ball.
        """
        is_mean = self.sampler == "poisson" or self.micro_batch_size > 1
        if self.unit == "micro_batch" and self.adjacency == "replace_one" and is_mean:
            return "replace_in_mean"
        return self.adjacency

    @property
    def aggregate_sensitivity(self) -> float:
        """The largest ‖change‖₂ of the released aggregate: κ C max α / (workers · units)."""
        return self._moved * max(self._scales) / self.num_workers

    def worker_noise_stddev(self, noise_multiplier: float) -> Tuple[float, ...]:
        """What one worker adds to a coordinate of its message; one number per layer.

        Published: C z / (N √k), the mean of k draws of C z / N; the same in all layers.
        Calibrated: α_k κ C z √workers / (workers · units).
        """
        scaled = self.max_grad_norm * noise_multiplier
        if self.variant == "published":
            scaled /= self.num_micro_batches * math.sqrt(self.micro_batches_per_worker)
            return tuple(scaled for _ in self._scales)
        scaled *= self.kappa / math.sqrt(self.num_workers)
        scaled /= self.units_per_worker
        return tuple(scale * scaled for scale in self._scales)

    def aggregate_noise_stddev(self, noise_multiplier: float) -> Tuple[float, ...]:
        """The noise on a coordinate of the aggregate, per layer: that of one worker / √workers."""
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
        """A worker's noise over the largest mean C α_k that it is added to, where smallest."""
        return self._smallest_ratio(self.worker_noise_stddev(noise_multiplier), self.max_grad_norm)

    def event(self, noise_multiplier: float, *, steps: int) -> Event:
        """Some steps of one epoch as an accountant is told; shuffled, any of them are one release.

        Between the neighbours of `replace_one` a Poisson event is relative to what ONE record adds,
        which is half of the whole change: one record goes, another comes.
        """
        effective = self.effective_noise_multiplier(noise_multiplier)
        if self.sampler == "shuffle":
            return Event("shuffle", effective, 1 if steps else 0)
        return Event("poisson", self.as_poisson(effective), steps, self.sample_rate)

    def as_poisson(self, effective: float) -> float:
        """The multiplier of a Poisson event, from one that is relative to the whole change."""
        return 2.0 * effective if self.neighbours == "replace_one" else effective

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON for the head of a ledger."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Release:
        """Reads what `to_dict` wrote, also in version 0.1.

        Raises:
            KeyError, TypeError, UserError: a field is unknown, missing or impossible.
        """
        given = dict(values)
        if "unit" not in given:
            given["unit"] = _OLD_UNITS[given.pop("clips", "micro_batch")]
        return cls(**given)

    def with_layer_scales(self, scales: Sequence[float]) -> Release:
        """The release once α is known.

        Raises:
            ValueError: the largest is not 1, which would change what a step costs.
        """
        known = replace(self, layer_scales=tuple(scales))
        if max(scales) != 1:
            raise ValueError(f"the largest layer scale is {max(scales)}, not 1")
        return known

    @property
    def _scales(self) -> Tuple[float, ...]:
        return (1.0,) if self.layer_scales is None else self.layer_scales

    @property
    def _moved(self) -> float:
        """How far one record moves one worker's message, in the scaled space."""
        return self.kappa * self.max_grad_norm / self.units_per_worker

    def _smallest_ratio(self, stddevs: Sequence[float], moved: float) -> float:
        """min_k stddev_k / (moved · α_k): the change lies in the ellipsoid with these half-axes.

        It is that of the largest α: published, all layers have one noise; calibrated, all ratios
        are equal, and rounding has no say where the largest is 1.
        """
        largest = max(self._scales)
        return stddevs[self._scales.index(largest)] / (moved * largest)
