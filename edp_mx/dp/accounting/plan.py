"""The plan of a run: everything that determines its privacy, in one object."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from edp_mx.dp.accounting.choices import (
    GAUSSIANS,
    MODES,
    SCALES_SOURCES,
    SCALES_UNITS,
    check_choice,
    check_count,
    check_delta,
    check_multiplier,
    choose_delta,
)
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS, Declaration
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.entries import SCALES, Entry
from edp_mx.dp.accounting.events import Composition, Event, check_poisson_steps
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.samplers import Sizes
from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_EPOCHS
from edp_mx.runtime.structured import NotOfKind, structure


@dataclass(frozen=True)
class Plan:
    """The releases of a run: their noise, the protected data, and the inputs assumed public.

    A plan is built once, when the data are dealt to the workers; it is completed by z₀ where that
    is calibrated for a target, and by α once it is known. The noise, the head of the ledger, the
    calibration, the budget, the guarantee and the reports read this object and nothing else, and
    all workers compare it before the first step.

    Attributes:
        release: one step; None without a mechanism.
        noise_multiplier: z₀.
        num_records: n, the utterances (or users) of the training part; None where only δ is known.
        delta_mode: how δ was chosen: default, value or paper.
        scales_source: where α comes from.
        scales_unit: largest (α is divided by its largest) or norm (α is taken as it is found, so
            that under the published variant the largest decides what a step costs).
        scales_multiplier: z_a of `dp_release`, whose release of α is counted.
        private_inputs: what reaches the model from private data without passing the mechanism:
            names from `coverage.PRIVATE_INPUTS`.
        assumed_public: the ones among them that the user declares public.
        declarations: inputs that reach the model without noise, and who declared them public; None
            where nobody wrote it down.
        clipping: how the gradients of units are computed, loop or ghost; ε is the same, but rests
            on other assumptions.
        gaussian: how noise is drawn, plain or hardened; ε is the same, but rests on other
            assumptions.
        seed_is_fixed: whoever knows the seed can draw the noise again.
        chooses_checkpoint: the weights of the best epoch are kept, by a private score.
        stops_early: training may end before T, by a private score.
        max_epsilon: the run ends before the step with which ε would exceed it.

    Raises:
        UserError: an unknown name, or a number that no run can have.
    """

    release: Optional[Release]
    noise_multiplier: float
    decay: Decay
    epochs: int
    delta: float
    steps_per_epoch: int = 1
    num_records: Optional[int] = None
    delta_mode: str = "default"
    scales_source: str = "ones"
    scales_unit: str = "largest"
    scales_multiplier: Optional[float] = None
    private_inputs: Tuple[str, ...] = ()
    assumed_public: Tuple[str, ...] = ()
    declarations: Optional[Tuple[Declaration, ...]] = None
    clipping: str = "loop"
    gaussian: str = "plain"
    seed_is_fixed: bool = False
    chooses_checkpoint: bool = False
    stops_early: bool = False
    max_epsilon: Optional[float] = None

    def __post_init__(self) -> None:
        for name in ("private_inputs", "assumed_public"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for given in getattr(self, name):
                check_choice(f"an entry of {name}", given, PRIVATE_INPUTS)
        check_choice("delta_mode", self.delta_mode, MODES)
        check_choice("scales_source", self.scales_source, SCALES_SOURCES)
        check_choice("scales_unit", self.scales_unit, SCALES_UNITS)
        check_choice("clipping", self.clipping, CLIPPINGS)
        check_choice("gaussian", self.gaussian, GAUSSIANS)
        check_count(self.epochs, "epochs", most=MOST_EPOCHS)
        check_count(self.steps_per_epoch, "steps_per_epoch")
        if self.num_records is not None:
            check_count(self.num_records, "num_records")
        if self.release is not None and self.release.draws.by_chance:
            check_poisson_steps(self.steps)
        check_multiplier(self.noise_multiplier)
        check_delta(self.delta)

    @property
    def released(self) -> Release:
        """One step, of a run that has a mechanism."""
        assert self.release is not None, "nothing is released without a mechanism"
        return self.release

    @property
    def mechanism(self) -> str:
        """none, edp_sgd (the mean of a micro-batch is clipped) or dp_sgd (each unit is)."""
        if self.release is None:
            return "none"
        return self.release.clips.mechanism

    @property
    def record(self) -> str:
        """Whom the guarantee protects: utterance or user."""
        return "utterance" if self.release is None else self.release.record

    @property
    def steps(self) -> int:
        """Number of optimizer steps in all."""
        return self.epochs * self.steps_per_epoch

    @property
    def sizes(self) -> Sizes:
        """The sizes that its ε is counted for, which those of the draws must be."""
        each = self.released
        size, count = each.micro_batch_size, each.micro_batches_per_worker
        return Sizes(self.num_records, size, count, each.sample_rate, self.steps_per_epoch)

    @property
    def awaits_scales(self) -> bool:
        """Whether ε depends on an α that is not known yet: its noise ignores α, and α is free."""
        release = self.release
        return (
            release is not None
            and (release.variant, self.scales_unit) == ("published", "norm")
            and self.scales_source != "ones"
            and release.layer_scales is None
        )

    def noise_multiplier_at(self, epoch: int) -> float:
        """Return z_t = z₀ d(t); no other place computes it."""
        return self.noise_multiplier * self.decay.factor(epoch)

    def effective_noise_multiplier_at(self, epoch: int) -> float:
        """Return z_eff of an epoch: of what is released, over its sensitivity."""
        return self.released.effective_noise_multiplier(self.noise_multiplier_at(epoch))

    def entry(
        self, epoch: int, steps: Optional[int] = None, first_step: Optional[int] = None
    ) -> Entry:
        """Return the entry of the ledger for some steps of an epoch, or for all of them."""
        multiplier = self.noise_multiplier_at(epoch)
        count = self.steps_per_epoch if steps is None else steps
        event = self.released.event(multiplier, steps=count)
        first_step = first_step if event.draws.by_chance else None
        return Entry(f"epoch {epoch}", event, multiplier, first_step)

    def scales_entries(self) -> Tuple[Entry, ...]:
        """Return the entry for the release of α from private data; none where there is no release.

        The records are not drawn at random, so that Poisson sampling does not amplify this event.
        Its multiplier is relative to the same change as that of a Poisson step.
        """
        if self.release is None or self.scales_multiplier is None:
            return ()
        multiplier = self.release.event_multiplier(self.scales_multiplier)
        return (Entry(SCALES, Event(self.release.sampler, multiplier)),)

    def entries(self) -> Tuple[Entry, ...]:
        """Return all entries of a run that nothing interrupts; none without a mechanism."""
        if self.release is None:
            return ()
        return (*self.scales_entries(), *map(self.entry, range(self.epochs)))

    def composition(self, entries: Sequence[Entry]) -> Composition:
        """Return the composition of some entries, e.g. of a ledger."""
        return Composition(self.released.neighbours, [entry.event for entry in entries])

    def with_noise_multiplier(self, noise_multiplier: float) -> Plan:
        """Return the same plan with another z₀."""
        return replace(self, noise_multiplier=noise_multiplier)

    def with_layer_scales(self, scales: Sequence[float]) -> Plan:
        """Return the plan completed by α; its ε is known from here on if it `awaits_scales`."""
        if self.scales_unit == "largest" and max(scales) != 1:
            raise ValueError(f"the largest layer scale is {max(scales)}, not 1")
        return replace(self, release=self.released.with_layer_scales(scales))

    def without_layer_scales(self) -> Plan:
        """Return the plan as it was before α was known, as in the head of the ledger."""
        release = self.release
        return replace(self, release=release and replace(release, layer_scales=None))

    def with_delta(self, delta: float) -> Plan:
        """Return the same plan at another δ; refuse one that is not below 1/n."""
        if self.num_records is not None:
            choose_delta(num_examples=self.num_records, delta=delta)
        return replace(self, delta=delta, delta_mode="value")

    def to_dict(self) -> Dict[str, Any]:
        """Return strict JSON for the head of a ledger."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """Read the mapping of `to_dict`; refuse one that is no plan of this version."""
        try:
            return structure(values, cls)
        except NotOfKind as error:
            raise UserError(f"not the plan of a run of this version ({error})") from error


def refuse_other_sizes(plan: Plan, drawn: Sizes) -> None:
    """Refuse batches of other sizes than those that the ε of a plan is counted for."""
    counted = plan.sizes
    if drawn.num_units != counted.num_units:
        raise UserError(
            f"the plan has num_examples={counted.num_units}, but the data set has "
            f"{drawn.num_units} {'users' if plan.released.clips.is_user else 'examples'}"
        )
    if drawn != counted:
        raise UserError(
            f"the plan counts steps of other sizes than it draws ({counted}, drawn would be "
            f"{drawn}): make it by make_plan, which computes one from the other"
        )
