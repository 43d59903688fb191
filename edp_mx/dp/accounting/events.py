"""Events: releases in the form that accountants read, and nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from edp_mx.dp.accounting.choices import NEIGHBOURS, check_choice, check_count, check_multiplier
from edp_mx.dp.accounting.samplers import SAMPLERS, Sampling
from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_POISSON_STEPS
from edp_mx.runtime.structured import structure


@dataclass(frozen=True)
class Event:
    """Equal Gaussian releases, one after the other.

    Attributes:
        sampler: shuffle (one event per epoch: all its disjoint batches together) or poisson (one
            event per step: each record is in it with probability `sample_rate`).
        effective_noise_multiplier: noise over sensitivity of the release; 0 for no noise.
        count: number of epochs (shuffle) or steps (poisson).
        sample_rate: q, from 0 to 1; 1 for shuffle, which is not amplified by sampling.
    """

    sampler: str
    effective_noise_multiplier: float
    count: int = 1
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        check_choice("sampler", self.sampler, SAMPLERS)
        check_multiplier(self.effective_noise_multiplier, "effective_noise_multiplier")
        check_count(self.count, "count")
        self.draws.check_rate(self.sample_rate)

    @property
    def draws(self) -> Sampling:
        """How its records were drawn."""
        return SAMPLERS[self.sampler]

    def to_dict(self) -> Dict[str, Any]:
        """Return strict JSON, e.g. for one line of a ledger."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Event:
        """Read the mapping of `to_dict`; refuse missing and unknown fields, and another type."""
        names = {field.name for field in dataclasses.fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise UserError(f"an event has missing or unknown fields: {odd}")
        return structure(values, cls)


@dataclass(frozen=True)
class Composition:
    """All that was released, in order, and the neighbours between which it is to be private.

    Attributes:
        neighbours: the effect of one record on a step that it is in. `zero_out` (also add or
            remove): it moves the release by the sensitivity. `replace_one`: each of two records
            moves it by the sensitivity, at worst in opposite directions. `replace_in_mean`: like
            `replace_one` where the mean of several is clipped as one, so that all that can be
            released lies in one ball, whose diameter is the sensitivity. Shuffled epochs do not
            distinguish them: their multiplier is relative to the whole change.
        events: equal ones that follow one another are merged; those that cannot contain a record
            are dropped.
    """

    neighbours: str
    events: Tuple[Event, ...]

    def __init__(self, neighbours: str, events: Iterable[Event] = ()) -> None:
        check_choice("neighbours", neighbours, NEIGHBOURS)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "events", _merged(events))

    def only(self, sampler: str) -> Tuple[Event, ...]:
        """Return the events; refuse them if one is of another sampler."""
        other = next((e.sampler for e in self.events if e.sampler != sampler), None)
        if other is None:
            return self.events
        raise UserError(
            f"an accountant of {sampler} sampling was given {other} events, which it does not "
            f"count: choose one of {other} sampling"
        )


def check_poisson_steps(steps: int) -> None:
    """Refuse more Poisson-sampled steps than can be counted in a reasonable time."""
    if steps > MOST_POISSON_STEPS:
        raise UserError(
            f"{steps:,} Poisson-sampled steps are more than the {MOST_POISSON_STEPS:,} whose ε is "
            "counted: take fewer epochs, or larger batches"
        )


def _merged(events: Iterable[Event]) -> Tuple[Event, ...]:
    """Merge equal events in a row; leave out those without steps or records."""
    merged: List[Event] = []
    for event in events:
        if event.count == 0 or event.sample_rate == 0:
            continue
        if merged and dataclasses.replace(event, count=merged[-1].count) == merged[-1]:
            event = dataclasses.replace(event, count=merged.pop().count + event.count)
        merged.append(event)
    return tuple(merged)
