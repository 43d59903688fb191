"""From a ledger alone to the guarantee that it adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Tuple

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, neighbours_of
from edp_mx.accounting.guarantee import guarantee
from edp_mx.accounting.ledger import Entry, Ledger, read_ledger
from edp_mx.accounting.ledger_plan import SCALES, differences, planned_epochs
from edp_mx.accounting.release import Release
from edp_mx.accounting.report import Guarantee
from edp_mx.errors import UserError
from edp_mx.files import PathLike


@dataclass(frozen=True)
class LedgerAccount:
    """What a ledger adds up to.

    Attributes:
        ledger: as it was read.
        spent: the guarantee of what it holds.
        planned: that of the whole plan in its head; the same where they do not differ.
        differences: where they differ, one sentence each.
    """

    ledger: Ledger
    spent: Guarantee
    planned: Guarantee
    differences: Tuple[str, ...]

    @property
    def composition(self) -> Composition:
        """What the accountants are given."""
        return composition_of(self.spent, self.ledger.entries)


def guarantee_of(facts: Mapping[str, Any], entries: Sequence[Entry]) -> Guarantee:
    """The guarantee that a ledger's facts and entries add up to.

    Raises:
        UserError: the facts are not those of a run of this version.
    """
    try:
        release = facts["release"] and Release(**facts["release"])
        settled = {**facts, "release": release, "decay": Decay(**facts["decay"])}
        return guarantee(**settled, entries=entries if release else None)
    except (KeyError, TypeError) as error:
        raise UserError(f"the head of the ledger is of another version ({error})") from error


def account_for(path: PathLike, *, delta: Optional[float] = None) -> LedgerAccount:
    """Reads a ledger and counts it, at the run's own δ or at another.

    Raises:
        UserError: it is missing or damaged (names the line), or δ is refused.
    """
    ledger = read_ledger(path)
    _check(Path(path), ledger)
    facts = ledger.facts
    if delta is not None:
        facts = {**facts, "delta": delta, "delta_mode": "value"}
    spent = guarantee_of(facts, ledger.entries)
    found = differences(ledger)
    planned = guarantee_of(facts, planned_entries_of(ledger)) if found else spent
    return LedgerAccount(ledger, spent, planned, found)


def planned_entries_of(ledger: Ledger) -> Tuple[Entry, ...]:
    """All that the plan would have released; what α costs is known from its own line only."""
    scales = tuple(entry for entry in ledger.entries if entry.what == SCALES)[:1]
    return (*scales, *planned_epochs(ledger.facts))


def composition_of(spent: Guarantee, entries: Sequence[Entry]) -> Composition:
    """The events of entries, between the neighbours of their release."""
    assert spent.release is not None  # only a mechanism writes a ledger
    return Composition(neighbours_of(spent.release), [entry.event for entry in entries])


def _check(path: Path, ledger: Ledger) -> None:
    """Refuses, with its line, what is JSON but cannot be counted."""
    try:
        if ledger.facts.get("release") is None:
            raise UserError("the head of the ledger names no release")
        guarantee_of(ledger.facts, ())
        planned_epochs(ledger.facts)
    except (UserError, KeyError, TypeError) as error:
        raise UserError(f"{path}, line 1: {error}") from error
    for number, entry in enumerate(ledger.entries, start=2):
        z = entry.noise_multiplier
        is_number = isinstance(z, (int, float)) and not isinstance(z, bool)
        if z is not None and not (is_number and 0 <= z < math.inf):
            raise UserError(
                f"{path}, line {number}: noise_multiplier is {z!r}; it must be a number, 0 or more"
            )
        if entry.event.sampler != ledger.facts["sampler"]:
            raise UserError(
                f"{path}, line {number}: an event of sampler {entry.event.sampler} in a run of "
                f"sampler {ledger.facts['sampler']}; the ledger is damaged"
            )
