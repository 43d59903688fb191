"""A run as it is planned: what it would release, and what that would cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Mapping, Sequence, Tuple

from edp_mx.accounting.bound import Bound, count_as_published, count_released, count_what_holds
from edp_mx.accounting.calibrate import calibrate_poisson, calibrate_rf
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, event_of, neighbours_of
from edp_mx.accounting.ledger import Entry
from edp_mx.accounting.published import count_published
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError

_NUDGE = 1e-7  # relative: where rounding puts a calibrated multiplier on the wrong side
# All that the multiplier says, and one utterance moves it by C: what the paper takes as given.
AS_GIVEN = Release(
    num_workers=1,
    micro_batch_size=1,
    max_grad_norm=1.0,
    layer_scales=(1.0,),
    adjacency="zero_out",
    variant="published",
)


@dataclass(frozen=True)
class Plan:
    """What a run would release, but for its noise multiplier.

    Attributes:
        release: one step; its sampler says which of the next are looked at.
        decay: d(t).
        epochs: T.
        steps_per_epoch: of Poisson steps.
        sample_rate: q, of Poisson steps.

    Raises:
        UserError: a negative number of epochs.

    Example:
        >>> plan = Plan(AS_GIVEN, Decay("linear", 0.5), epochs=3)
        >>> [entry.noise_multiplier for entry in plan.entries(3.0)]
        [3.0, 2.0, 1.5]
    """

    release: Release
    decay: Decay
    epochs: int
    steps_per_epoch: int = 1
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise UserError(f"epochs is {self.epochs}; it must be 0 or more")

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Plan:
        """The plan in the head of a ledger.

        Raises:
            KeyError, TypeError, UserError: the facts are not those of a run of this version.
        """
        release, epochs = Release(**facts["release"]), facts["epochs"]
        batch_size = round(release.micro_batch_size * release.num_workers)
        return cls(
            release=release,
            decay=Decay(**facts["decay"]),
            epochs=epochs,
            steps_per_epoch=facts["steps"] // epochs if epochs else 0,
            sample_rate=min(batch_size / facts["num_examples"], 1.0),
        )

    @property
    def is_poisson(self) -> bool:
        return self.release.sampler == "poisson"

    def entries(self, noise_multiplier: float) -> Tuple[Entry, ...]:
        """The lines that a run writes for its epochs if nothing interrupts it."""
        entries = []
        for epoch in range(self.epochs):
            multiplier = self.decay.noise_multiplier_at(noise_multiplier, epoch)
            event = event_of(
                self.release,
                multiplier,
                steps=self.steps_per_epoch,
                sample_rate=self.sample_rate,
            )
            entries.append(Entry(f"epoch {epoch}", event, multiplier))
        return tuple(entries)

    def composition(self, noise_multiplier: float) -> Composition:
        """The same as an accountant wants it."""
        events = (entry.event for entry in self.entries(noise_multiplier))
        return Composition(neighbours_of(self.release), events)

    def composition_as_given(self, noise_multiplier: float) -> Composition:
        """As if the noise were all that the multiplier says, and one utterance moved it by C."""
        return as_given(self.entries(noise_multiplier))

    def count_as_published(self, noise_multiplier: float, *, delta: float) -> Bound:
        """ε as it is published, see `count_published`; for whole epochs in closed form."""
        if self.is_poisson and self.release.clips == "example":
            return count_published(self.release, self.entries(noise_multiplier), delta=delta)
        return count_as_published(
            noise_multiplier=noise_multiplier, decay=self.decay, epochs=self.epochs, delta=delta
        )

    def count_what_holds(self, noise_multiplier: float, *, delta: float) -> Bound:
        """ε that holds: in closed form for shuffled epochs, else by `poisson_pld`."""
        if self.is_poisson:
            return count_released(self.composition(noise_multiplier), delta=delta)
        return count_what_holds(
            release=self.release,
            noise_multiplier=noise_multiplier,
            decay=self.decay,
            epochs=self.epochs,
            delta=delta,
        )

    def count_as_given(self, noise_multiplier: float, *, delta: float) -> Bound:
        """The same for `composition_as_given`; not what holds for this plan."""
        if self.is_poisson:
            return count_released(self.composition_as_given(noise_multiplier), delta=delta)
        return count_what_holds(
            release=AS_GIVEN,
            noise_multiplier=noise_multiplier,
            decay=self.decay,
            epochs=self.epochs,
            delta=delta,
        )

    def calibrate(self, *, target_epsilon: float, delta: float) -> Tuple[float, Bound]:
        """z₀ of this plan on the safe side, and what holds at it: at most the target.

        Raises:
            UserError: an impossible target.
        """
        if self.is_poisson:
            wanted = calibrate_poisson(
                target_epsilon=target_epsilon,
                delta=delta,
                decay=self.decay,
                epochs=self.epochs,
                steps_per_epoch=self.steps_per_epoch,
                sample_rate=self.sample_rate,
                neighbours=neighbours_of(self.release),
            )
        else:
            wanted = calibrate_rf(
                target_epsilon=target_epsilon,
                delta=delta,
                decay=self.decay,
                epochs=self.epochs,
                conversion="exact",
            )
        z = wanted / event_of(self.release, 1.0, steps=1).effective_noise_multiplier
        while True:
            holds = self.count_what_holds(z, delta=delta)
            if holds.epsilon.value is not None and holds.epsilon.value <= target_epsilon:
                return z, holds
            z *= 1 + _NUDGE


def as_given(entries: Sequence[Entry]) -> Composition:
    """As if the noise were all that the multiplier says, and one utterance moved it by C.

    What α cost is left out, as the paper does.
    """
    events = [
        replace(entry.event, effective_noise_multiplier=entry.noise_multiplier)
        for entry in entries
        if entry.noise_multiplier is not None
    ]
    return Composition("zero_out", events)
