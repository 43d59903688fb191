"""What was released: the only thing that an accountant is given."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.errors import UserError

SAMPLERS = ("shuffle", "poisson")
NEIGHBOURS = ("zero_out", "replace_one", "replace_in_mean")


@dataclass(frozen=True)
class Event:
    """Equal Gaussian releases, one after the other.

    Attributes:
        sampler: shuffle (one event an epoch: all its disjoint batches together) or poisson (one
            event a step: each record is in it with probability `sample_rate`).
        effective_noise_multiplier: noise over sensitivity of what is released; 0 for no noise.
        count: how many epochs (shuffle) or steps (poisson).
        sample_rate: q, in (0, 1]; 1 for shuffle, which is not amplified by sampling.

    Raises:
        UserError: an unknown sampler or an impossible number.

    Example:
        >>> Event("poisson", 1.1, count=1000, sample_rate=0.01).to_dict()["count"]
        1000
    """

    sampler: str
    effective_noise_multiplier: float
    count: int = 1
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UserError(f"sampler is {self.sampler!r}; choose one of {', '.join(SAMPLERS)}")
        if not 0 <= self.effective_noise_multiplier < math.inf:
            raise UserError(
                f"effective_noise_multiplier is {self.effective_noise_multiplier}; it must be "
                "finite, 0 or more"
            )
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise UserError(f"count is {self.count!r}; it must be a whole number, 0 or more")
        if not 0 <= self.sample_rate <= 1:
            raise UserError(f"sample_rate is {self.sample_rate}; it must lie between 0 and 1")
        if self.sampler == "shuffle" and self.sample_rate != 1:
            raise UserError(
                f"sample_rate is {self.sample_rate} but the sampler is shuffle, which sampling "
                "does not amplify; leave it out, or draw by Poisson"
            )

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON, e.g. for one line of a ledger."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Event:
        """Reads what `to_dict` wrote.

        Raises:
            UserError: a missing or unknown field, or a value that is not a number.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise UserError(f"an event has other fields than it should: {odd}")
        for name in ("effective_noise_multiplier", "sample_rate"):
            if isinstance(values[name], bool) or not isinstance(values[name], (int, float)):
                raise UserError(f"{name} of an event is {values[name]!r}; it must be a number")
        return cls(**values)


@dataclass(frozen=True)
class Composition:
    """All that was released, in order, and which neighbours it is to be private between.

    Attributes:
        neighbours: what one record can do to a step that it is in. `zero_out` (add or remove
            too): it moves the release by the sensitivity. `replace_one`: each of two records
            moves it by the sensitivity, in opposite directions at worst. `replace_in_mean`: as
            `replace_one` where a mean of several is clipped as one: all that can be released
            lies in one ball, whose diameter is the sensitivity. Equal for shuffled epochs, whose
            multiplier is relative to the whole change.
        events: equal neighbours are merged, empty ones dropped.

    Raises:
        UserError: unknown neighbours.

    Example:
        >>> steps = [Event("poisson", 2.0, 5, 0.1), Event("poisson", 2.0, 7, 0.1)]
        >>> [event.count for event in Composition("zero_out", steps).events]
        [12]
    """

    neighbours: str
    events: Tuple[Event, ...]

    def __init__(self, neighbours: str, events: Iterable[Event] = ()) -> None:
        if neighbours not in NEIGHBOURS:
            raise UserError(f"neighbours is {neighbours!r}; choose one of {', '.join(NEIGHBOURS)}")
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "events", _merged(events))

    def then(self, event: Event) -> Composition:
        """The same with one event more."""
        return Composition(self.neighbours, (*self.events, event))

    def only(self, sampler: str) -> Tuple[Event, ...]:
        """The events, if all are of this sampler.

        Raises:
            UserError: one that is not; its accountant does not speak of it.
        """
        for event in self.events:
            if event.sampler == sampler:
                continue
            if sampler == "poisson":
                raise UserError(
                    "a Poisson accountant was given shuffled epochs: batches that are shuffled are "
                    "not drawn independently, so nothing amplifies their privacy; use rf_exact"
                )
            raise UserError(
                "rf_exact was given Poisson steps: a record may be in several of them an epoch; "
                "use poisson_pld or poisson_rdp"
            )
        return self.events


def shuffled_epochs(
    *, release: Release, noise_multiplier: float, decay: Decay, epochs: int
) -> Composition:
    """Epochs of disjoint batches: one event an epoch, whatever the steps."""
    effective = release.effective_noise_multiplier(noise_multiplier)
    return Composition(
        release.adjacency,
        [Event("shuffle", decay.noise_multiplier_at(effective, t)) for t in range(epochs)],
    )


def poisson_steps(
    *,
    release: Release,
    noise_multiplier: float,
    decay: Decay,
    epochs: int,
    steps_per_epoch: int,
    sample_rate: float,
) -> Composition:
    """Steps whose records are drawn independently; the multiplier falls by epoch."""
    effective = poisson_multiplier(release, release.effective_noise_multiplier(noise_multiplier))
    events = [
        Event("poisson", decay.noise_multiplier_at(effective, t), steps_per_epoch, sample_rate)
        for t in range(epochs)
    ]
    return Composition(neighbours_of(release), events)


def event_of(
    release: Release, noise_multiplier: float, *, steps: int, sample_rate: float = 1.0
) -> Event:
    """Some steps of an epoch; shuffled, they count as one epoch however many they are.

    Args:
        noise_multiplier: z_t.
        steps, sample_rate: how many, and q; of Poisson steps only.
    """
    effective = release.effective_noise_multiplier(noise_multiplier)
    if release.sampler == "shuffle":
        return Event("shuffle", effective)
    return Event("poisson", poisson_multiplier(release, effective), steps, sample_rate)


def poisson_multiplier(release: Release, effective: float) -> float:
    """The multiplier of a Poisson event, from one that is relative to the whole change.

    Between the neighbours of `replace_one` an event is relative to what ONE record adds, which is
    half of the whole change: one record goes, another comes. Between all others it is the same.
    """
    return 2.0 * effective if neighbours_of(release) == "replace_one" else effective


def neighbours_of(release: Release) -> str:
    """What one record can do to a step of this release, in the terms of `Composition`.

    Where each example is clipped, two records move the sum by C each, whoever else is drawn: that
    is `replace_one`, also of several. Where a mean of several is, all lies in one ball.
    """
    is_mean = release.sampler == "poisson" or release.micro_batch_size > 1
    if release.clips == "micro_batch" and release.adjacency == "replace_one" and is_mean:
        return "replace_in_mean"
    return release.adjacency


def _merged(events: Iterable[Event]) -> Tuple[Event, ...]:
    """Equal neighbours as one event, empty ones left out."""
    merged: List[Event] = []
    for event in events:
        if event.count == 0:
            continue
        if merged and dataclasses.replace(event, count=merged[-1].count) == merged[-1]:
            event = dataclasses.replace(event, count=merged.pop().count + event.count)
        merged.append(event)
    return tuple(merged)
