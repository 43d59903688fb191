"""Entries of a ledger: releases, written down before they are made."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.dp.accounting.choices import check_count, check_multiplier
from edp_mx.dp.accounting.events import Event
from edp_mx.errors import UserError
from edp_mx.runtime.structured import structure

SCALES = "layer scales"  # `Entry.what` of the release of α
_EPOCH = re.compile(r"epoch (\d+)")


@dataclass(frozen=True)
class Entry:
    """One line of a ledger: equal releases that were about to be made.

    Attributes:
        what: in words, e.g. "epoch 3"; in the ledger epochs count from 0, for people from 1.
        noise_multiplier: z_t as the paper counts it; None where the paper counts nothing.
        first_step: of its epoch, from 0, with which Poisson steps begin, since a resumed run
            repeats some. None in a plan, and of a shuffled epoch.
    """

    what: str
    event: Event
    noise_multiplier: Optional[float] = None
    first_step: Optional[int] = None

    def __post_init__(self) -> None:
        if self.noise_multiplier is not None:
            check_multiplier(self.noise_multiplier)
        if self.first_step is not None:
            check_count(self.first_step, "first_step")

    def to_dict(self) -> Dict[str, Any]:
        """Return the entry as it is written."""
        own = {"what": self.what, "noise_multiplier": self.noise_multiplier}
        place = {} if self.first_step is None else {"first_step": self.first_step}
        return {**own, **place, **self.event.to_dict()}

    @property
    def epoch(self) -> Optional[int]:
        """The epoch that it belongs to, if any."""
        match = _EPOCH.fullmatch(self.what)
        return int(match.group(1)) if match else None

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.what if self.epoch is None else f"epoch {self.epoch + 1}"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Entry:
        """Read the mapping that `to_dict` wrote."""
        event, names = dict(values), ("what", "noise_multiplier", "first_step")
        own = {name: event.pop(name) for name in names if name in event}
        for name in names[:2]:
            if name not in own:
                raise UserError(f"an entry lacks {name!r}")
        Event.from_dict(event)  # which needs all of its fields
        return structure({**own, "event": event}, cls)


def merged(entries: Sequence[Entry]) -> Tuple[Entry, ...]:
    """Merge neighbours that differ in their steps only, for a shorter list to look at."""
    short: List[Entry] = []
    for entry in entries:
        entry = replace(entry, first_step=None)
        last = short[-1] if short else None
        if last and replace(entry, event=replace(entry.event, count=last.event.count)) == last:
            count = last.event.count + entry.event.count
            short[-1] = replace(last, event=replace(last.event, count=count))
        else:
            short.append(entry)
    return tuple(short)
