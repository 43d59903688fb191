"""One step as it is released: how far a record can move it, and how much noise it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional, Sequence, Tuple

from edp_mx.dp.accounting.choices import ADJACENCIES, VARIANTS, check_choice, check_rate
from edp_mx.dp.accounting.clippings import CLIP_RULES
from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.samplers import SAMPLERS, Sampling
from edp_mx.dp.accounting.units import UNITS, Unit
from edp_mx.errors import UserError
from edp_mx.runtime.limits import LEAST_NORM, MOST_COUNTED, MOST_NORM

_CHOICES = {"unit": tuple(UNITS), "adjacency": ADJACENCIES, "variant": VARIANTS,
            "sampler": tuple(SAMPLERS), "clip_rule": tuple(CLIP_RULES)}  # fmt: skip


@dataclass(frozen=True)
class Release:
    """One step of Algorithm 1 or of DP-SGD, as seen by whoever receives the aggregate.

    Every worker clips units, sums them, divides by the public number of its units, adds its noise
    and sends the result; the mean over the workers is released. Both the mechanism's noise and the
    accountant's multiplier come from this object, so that the two cannot disagree.

    Attributes:
        unit: of clipping to C: micro_batch (the mean gradient of a micro-batch, Algorithm 1),
            utterance (each utterance's own gradient, DP-SGD) or user (the sum over a user's
            utterances).
        num_workers: processes that draw their noise independently and send one message each.
        micro_batch_size: |M|: the utterances of one micro-batch (unit micro_batch); or how many
            units one worker has in a step, by which it divides its sum (utterance, user). Under
            poisson it is the expected number and need not be whole.
        max_grad_norm: C.
        adjacency: replace_one (a record becomes another) or zero_out (its gradient becomes 0). The
            record is an utterance, or a user where the unit is one.
        variant: published (noise C z / N on each micro-batch after the rescaling, the same in
            every layer) or calibrated (noise in proportion to what one record can move).
        sampler: shuffle (each micro-batch has |M| records) or poisson (as many as are drawn).
        sample_rate: q, the probability with which a record is in a step; 1 for shuffle.
        layer_scales: α, one per layer; None until they are known. See `Plan.scales_unit`.
        micro_batches_per_worker: k, so that Algorithm 1 has N = workers · k; 1 for other units.
        clip_rule: how a unit is brought to C, see `clippings`.

    Raises:
        UserError: an unknown name, an impossible number, or a published variant of DP-SGD.

    Units: `..._stddev` and `aggregate_sensitivity` have the gradient's; multipliers have none.

    Guarantee: with noise multiplier z a step costs zCDP ρ = 1 / (2 z_eff²), z_eff being
    `effective_noise_multiplier(z)`; for the calibrated variant z_eff = z. For utterances and users
    a unit's gradient must depend on the weights and on that unit alone (and on dropout masks that
    nobody knows), and the divisor must not be the number of units that were drawn.

    Source: eDP-SGD, Algorithm 1; docs/privacy.md, sections 1 to 3 and 8.

    Departs: the paper counts z itself, which holds only for independent clipping of single
    utterances (κ = 1), max α = 1 and one micro-batch per step.
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
    clip_rule: str = "abadi"

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_grad_norm", float(self.max_grad_norm))
        if self.layer_scales is not None:
            object.__setattr__(self, "layer_scales", tuple(map(float, self.layer_scales)))
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        self.clips.check_variant(self.variant, self.micro_batches_per_worker)
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuse numbers that no run can have, NaN included."""
        whole = ["num_workers", "micro_batches_per_worker"]
        for name in whole + ["micro_batch_size"] * self.draws.has_fixed_size:
            value = getattr(self, name)
            if not (
                1 <= value <= MOST_COUNTED and value == int(value) and not isinstance(value, bool)
            ):
                raise UserError(
                    f"{name} is {value}; it must be a whole number from 1 to {MOST_COUNTED:,}"
                )
        for name, most in (("micro_batch_size", MOST_COUNTED), ("max_grad_norm", MOST_NORM)):
            if not LEAST_NORM <= getattr(self, name) <= most:
                raise UserError(
                    f"{name} is {getattr(self, name)}; it must lie between {LEAST_NORM:g} and "
                    f"{most:g}"
                )
        check_rate(self.sample_rate)
        if self.layer_scales is not None and not self.layer_scales:
            raise UserError("layer_scales is empty; give one scale per layer")
        for scale in self.layer_scales or ():
            if not 0 < scale < math.inf:
                raise UserError(f"layer_scales holds {scale}; all must be finite and above 0")

    @property
    def clips(self) -> Unit:
        """The unit, as an object that answers."""
        return UNITS[self.unit]

    @property
    def draws(self) -> Sampling:
        """The sampler, as an object that answers."""
        return SAMPLERS[self.sampler]

    @property
    def num_micro_batches(self) -> int:
        """N of Algorithm 1: micro-batches per step, over all workers."""
        return self.num_workers * self.micro_batches_per_worker

    @property
    def units_per_worker(self) -> float:
        """The public number by which one worker divides its sum of clipped units."""
        return self.clips.per_worker(self.micro_batches_per_worker, self.micro_batch_size)

    @property
    def batch_size(self) -> float:
        """B: records per step over all workers; the expected number under poisson."""
        return self.num_micro_batches * self.micro_batch_size

    @property
    def record(self) -> str:
        """Whom the guarantee protects: utterance or user."""
        return self.clips.record

    @property
    def kappa(self) -> float:
        """κ: by how many clipping norms C one record can move one worker's clipped sum.

        Where utterances or users are clipped (DP-SGD), κ is 1 under zero_out and 2 under
        replace_one (one gradient goes, another comes). Where a micro-batch is clipped, κ is 2 under
        replace_one, and whenever the mean of several utterances is clipped, since one of them can
        reverse its direction; it is 1 only for single utterances whose gradient becomes 0. Under
        Poisson sampling κ is always 2 for micro-batches: others may be drawn with the one expected.
        """
        return self.clips.kappa(self.adjacency, is_single=self._is_single)

    @property
    def neighbours(self) -> str:
        """The effect of one record on a step, in the terms of `events.Composition`.

        Where the mean of several utterances is clipped, all that can be released lies in one ball.
        """
        return self.clips.neighbours(self.adjacency, is_single=self._is_single)

    @property
    def aggregate_sensitivity(self) -> float:
        """The largest ‖change‖₂ of the released aggregate: κ C max α / (workers · units)."""
        return self._moved * max(self._scales) / self.num_workers

    def worker_noise_stddev(self, noise_multiplier: float) -> Tuple[float, ...]:
        """Return the standard deviation of one worker's noise per coordinate, one per layer.

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
        """Return the noise per coordinate of the aggregate, per layer: a worker's / √workers."""
        root = math.sqrt(self.num_workers)
        return tuple(stddev / root for stddev in self.worker_noise_stddev(noise_multiplier))

    def effective_noise_multiplier(self, noise_multiplier: float) -> float:
        """Return z_eff: noise over sensitivity of the aggregate, in the layer where it is smallest.

        It is the only number that an accountant is given: z for calibrated, z / (κ max α √N) for
        published.
        """
        moved = self._moved / self.num_workers
        return self._smallest_ratio(self.aggregate_noise_stddev(noise_multiplier), moved)

    def worker_noise_multiplier(self, noise_multiplier: float) -> float:
        """Return z_eff for someone who sees the message of a single worker."""
        return self._smallest_ratio(self.worker_noise_stddev(noise_multiplier), self._moved)

    def relative_noise(self, noise_multiplier: float) -> float:
        """Return a worker's noise over the largest mean C α_k that it is added to, at least."""
        return self._smallest_ratio(self.worker_noise_stddev(noise_multiplier), self.max_grad_norm)

    def event(self, noise_multiplier: float, *, steps: int) -> Event:
        """Return the event of some steps of one epoch; those of a shuffled one are one release."""
        effective = self.effective_noise_multiplier(noise_multiplier)
        multiplier = self.event_multiplier(effective)
        rate = self.sample_rate if self.draws.by_chance else 1.0
        return Event(self.sampler, multiplier, self.draws.count(steps), rate)

    def event_multiplier(self, effective: float) -> float:
        """Return the multiplier of an event, given the one relative to the whole change.

        Between the neighbours of `replace_one` an event that is drawn by chance is relative to what
        ONE record adds, which is half of the whole change: one record goes, another comes.
        """
        is_halved = self.draws.by_chance and self.neighbours == "replace_one"
        return 2.0 * effective if is_halved else effective

    def with_layer_scales(self, scales: Sequence[float]) -> Release:
        """Return the release once α is known."""
        return replace(self, layer_scales=tuple(scales))

    @property
    def _is_single(self) -> bool:
        return self.draws.has_fixed_size and self.micro_batch_size == 1

    @property
    def _scales(self) -> Tuple[float, ...]:
        return (1.0,) if self.layer_scales is None else self.layer_scales

    @property
    def _moved(self) -> float:
        """How far one record moves one worker's message, in the scaled space."""
        return self.kappa * self.max_grad_norm / self.units_per_worker

    def _smallest_ratio(self, stddevs: Sequence[float], moved: float) -> float:
        """min_k stddev_k / (moved · α_k): the change lies in the ellipsoid with these half-axes.

        The minimum is at the largest α: for published all layers have the same noise, and for
        calibrated all ratios are equal.
        """
        largest = max(self._scales)
        return stddevs[self._scales.index(largest)] / largest / moved
