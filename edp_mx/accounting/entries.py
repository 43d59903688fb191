"""Entries of a ledger: what was about to be released."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.accounting.events import Event
from edp_mx.errors import UserError

SCALES = "layer scales"  # `Entry.what` of the release of α
_EPOCH = re.compile(r"epoch (\d+)")


@dataclass(frozen=True)
class Entry:
    """One line of a ledger: equal releases that were about to be made.

    Attributes:
        what: in words, e.g. "epoch 3"; in the ledger epochs count from 0, for people from 1.
        noise_multiplier: z_t as the paper counts it; None where the paper counts nothing.
        first_step: of its epoch, from 0, with which Poisson steps begin, since a resumed run
            repeats some. None in a plan, in older ledgers, and of a shuffled epoch.
    """

    what: str
    event: Event
    noise_multiplier: Optional[float] = None
    first_step: Optional[int] = None

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
        """Read what `to_dict` wrote."""
        event = dict(values)
        try:
            what, noise_multiplier = event.pop("what"), event.pop("noise_multiplier")
        except KeyError as error:
            raise UserError(f"an entry lacks {error}") from error
        first = event.pop("first_step", None)
        if first is not None and not (type(first) is int and first >= 0):
            raise UserError(f"first_step is {first!r}; it must be a whole number, 0 or more")
        return cls(str(what), Event.from_dict(event), noise_multiplier, first)


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
