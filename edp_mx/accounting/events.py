"""What was released: the only thing that an accountant is given."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from edp_mx.errors import UserError

SAMPLERS = ("shuffle", "poisson")
NEIGHBOURS = ("zero_out", "replace_one", "replace_in_mean")


@dataclass(frozen=True)
class Event:
    """Equal Gaussian releases, one after the other.

    Attributes:
        sampler: shuffle (one event per epoch: all its disjoint batches together) or poisson (one
            event per step: each record is in it with probability `sample_rate`).
        effective_noise_multiplier: noise over sensitivity of what is released; 0 for no noise.
        count: how many epochs (shuffle) or steps (poisson).
        sample_rate: q, from 0 (nobody is ever drawn, which costs nothing) to 1; 1 for shuffle,
            which is not amplified by sampling.

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
        events: equal ones that follow one another are merged; those in which no record can be
            are dropped.

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


def _merged(events: Iterable[Event]) -> Tuple[Event, ...]:
    """Equal ones in a row as one event; those without steps or records left out."""
    merged: List[Event] = []
    for event in events:
        if event.count == 0 or event.sample_rate == 0:
            continue
        if merged and dataclasses.replace(event, count=merged[-1].count) == merged[-1]:
            event = dataclasses.replace(event, count=merged.pop().count + event.count)
        merged.append(event)
    return tuple(merged)
