"""The ledger of a run: what was released, written down before it is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from edp_mx.accounting.events import Event
from edp_mx.errors import UserError
from edp_mx.files import PathLike

VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One line: equal releases that were about to be made.

    Attributes:
        what: in words, e.g. "epoch 3".
        event: what the accountants are given.
        noise_multiplier: z_t as the paper counts it; None where the paper counts nothing.
    """

    what: str
    event: Event
    noise_multiplier: Optional[float] = None

    def to_dict(self) -> Dict[str, Any]:
        """As it is written."""
        return {
            "what": self.what,
            "noise_multiplier": self.noise_multiplier,
            **self.event.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Entry:
        """As it was written.

        Raises:
            UserError: a field is missing, unknown, or no number.
        """
        event = dict(values)
        try:
            what, noise_multiplier = event.pop("what"), event.pop("noise_multiplier")
        except KeyError as error:
            raise UserError(f"an entry lacks {error}") from error
        return cls(str(what), Event.from_dict(event), noise_multiplier)


@dataclass(frozen=True)
class Ledger:
    """What a ledger file says.

    Attributes:
        facts: what all releases have in common, as `LedgerFile` was given it.
        entries: in the order in which they were written.
        is_torn: the last line was cut off by a crash; nothing had been released for it.
    """

    facts: Dict[str, Any]
    entries: Tuple[Entry, ...]
    is_torn: bool

    @property
    def events(self) -> Tuple[Event, ...]:
        """All that was released, the layer scales too."""
        return tuple(entry.event for entry in self.entries)


class LedgerFile:
    """Appends to a ledger; each line is on disk before the call returns.

    Args:
        path: the file; made if it is not there.
        facts: strict JSON, the same at each start of one run.

    Raises:
        UserError: the file belongs to other facts, is damaged, or cannot be written.

    Guarantee: an entry is on disk before what it speaks of is released. A crash between the two
    leaves an entry too many, never one too few; so does a resumed run, which repeats an epoch and
    writes it down again.
    """

    def __init__(self, path: PathLike, facts: Mapping[str, Any]) -> None:
        self._path = Path(path)
        if self._path.exists():
            self._cut_torn_line()
        if not self._path.exists() or not self._path.stat().st_size:
            self._append({"version": VERSION, "facts": dict(facts)})
        ledger = read_ledger(self._path)
        for key in sorted(set(ledger.facts) | set(facts)):
            before, now = ledger.facts.get(key), json.loads(json.dumps(facts.get(key)))
            if before != now:
                raise UserError(
                    f"{self._path} was begun with {key} {before}, but the run has {now}: a ledger "
                    "is that of one run; train into a new directory"
                )

    def append(self, entry: Entry) -> None:
        """Writes an entry down; only when this returns may it be released.

        Raises:
            UserError: the disk is full or the file cannot be written; nothing may be released.
        """
        self._append(entry.to_dict())

    def _append(self, value: Dict[str, Any]) -> None:
        is_new = not self._path.exists()
        line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                _sync_folder(self._path.parent)
        except OSError as error:
            raise UserError(
                f"cannot write {self._path}: {error.strerror}; nothing was released without "
                "being written down"
            ) from error

    def _cut_torn_line(self) -> None:
        """Takes away what a crash left of a line, so that the next one is not joined to it."""
        with self._path.open("r+b") as file:
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            os.fsync(file.fileno())


def read_ledger(path: PathLike) -> Ledger:
    """Reads a ledger.

    Raises:
        UserError: it is missing, or a line other than a torn last one is damaged; names the line.
    """
    path = Path(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read the ledger {path}: {error.strerror}; without it nobody knows what the "
            "run has spent"
        ) from error
    *lines, rest = text.split(b"\n")
    if not lines:
        raise UserError(f"{path} holds no whole line: the run ended before it released anything")
    values = [_parse(path, number, line) for number, line in enumerate(lines, start=1)]
    header = values[0]
    if header.get("version") != VERSION or not isinstance(header.get("facts"), dict):
        raise UserError(f"{path}, line 1: not the head of a ledger of version {VERSION}")
    entries: List[Entry] = []
    for number, value in enumerate(values[1:], start=2):
        try:
            entries.append(Entry.from_dict(value))
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    return Ledger(header["facts"], tuple(entries), is_torn=bool(rest))


def merged(entries: Tuple[Entry, ...]) -> Tuple[Entry, ...]:
    """Neighbours that differ in their count only, as one: a shorter list to look at."""
    short: List[Entry] = []
    for entry in entries:
        last = short[-1] if short else None
        if last and replace(entry, event=replace(entry.event, count=last.event.count)) == last:
            count = last.event.count + entry.event.count
            short[-1] = replace(last, event=replace(last.event, count=count))
        else:
            short.append(entry)
    return tuple(short)


def _parse(path: Path, number: int, line: bytes) -> Dict[str, Any]:
    """One whole line."""
    try:
        value = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path}, line {number}: not JSON; the ledger is damaged, and no ε can be read from it"
        ) from error
    if not isinstance(value, dict):
        raise UserError(f"{path}, line {number}: not an entry of a ledger")
    return value


def _sync_folder(folder: Path) -> None:
    """Makes a new file's name survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
