"""The ledger of a run: releases, each written down before it is made."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple

from edp_mx.dp.accounting.chain import Chain
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.events import check_poisson_steps
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import PathLike, sync_folder
from edp_mx.runtime.json_text import parse_json
from edp_mx.runtime.structured import structure

LEDGER = "privacy_ledger.jsonl"  # its file, in the folder of a training
VERSION = 3
_STOPPED = {"stopped": "diverged"}  # the line of a run that the program ended for its results


@dataclass(frozen=True)
class Ledger:
    """The content of a ledger file; its plan has α if that was written down.

    The last line `is_torn` if a crash cut it off; nothing had been released for it. `chain` stands
    at the last whole line. The run `is_stopped` if the program ended it, once at least, because of
    what it showed.
    """

    plan: Plan
    entries: Tuple[Entry, ...]
    is_torn: bool
    chain: Chain
    is_stopped: bool = False


@dataclass(frozen=True)
class LedgerMark:
    """State of a ledger at the time of a checkpoint: its length in bytes, and their SHA-256."""

    size: int
    digest: str


@dataclass(frozen=True)
class _Scales:
    """The line with α."""

    layer_scales: Tuple[float, ...]


class LedgerFile:
    """Appends to a ledger; each line is on disk before the call returns.

    A run that resumes gives the `mark` of its checkpoint; its plan is the same at each start, apart
    from α.

    Raises:
        UserError: the mark or the plan is of another file; it is damaged, or cannot be written.

    Guarantee: an entry is on disk before its release is made. A crash between the two
    leaves an entry too many, never one too few; so does a resumed run, which repeats an epoch and
    writes it down again. What a checkpoint confirms cannot be lost or changed without notice.
    """

    def __init__(self, path: PathLike, plan: Plan, *, mark: Optional[LedgerMark] = None) -> None:
        self._path = Path(path)
        if mark is not None:
            refuse_other(self._path, mark)
        if self._path.exists():
            self._end_last_line()
        self._chain = Chain()
        self._size = self._size_now()
        if not self._size:
            self._append({"version": VERSION, "plan": plan.without_layer_scales().to_dict()})
        ledger = self.read()
        refuse_other_plan(self._path, ledger, plan)
        self._chain = ledger.chain

    def append(self, entry: Entry) -> None:
        """Write an entry down; the release may be made only once this has returned."""
        self._append(entry.to_dict())

    def complete(self, scales: Sequence[float]) -> None:
        """Write α down once it is known, before the first step; refuse any but the ledger's."""
        release = self.read().plan.released
        if release.layer_scales is None:
            self._append({"layer_scales": list(scales)})
        elif release.layer_scales != tuple(scales):
            raise UserError(
                f"{self._path} holds other layer scales than the run has: a ledger belongs to one "
                "run; train into a new directory"
            )

    def stop(self) -> None:
        """Write down that the program ends the run because of what was released, such as NaN."""
        self._append(_STOPPED)

    def read(self) -> Ledger:
        """Return the present content of the file."""
        return read_ledger(self._path)

    def mark(self) -> LedgerMark:
        """Return the current state, for the checkpoint beside the ledger."""
        content = _bytes_of(self._path)
        return LedgerMark(len(content), hashlib.sha256(content).hexdigest())

    def _append(self, value: Dict[str, Any]) -> None:
        chain = self._chain.copy()
        line = chain.add(value)
        if self._size_now() != self._size:
            raise UserError(
                f"{self._path} was changed or removed since this training opened it, perhaps by a "
                "second training in the same folder: give each a folder of its own"
            )
        with self._written("ab") as file:
            file.write(line)
        self._chain, self._size = chain, self._size + len(line)

    def _size_now(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    @contextmanager
    def _written(self, mode: str) -> Iterator[BinaryIO]:
        """Open the file to change it; the change is on disk at the end."""
        is_new, size = not self._path.exists(), self._size_now()
        try:
            with open(self._path, mode) as file:
                yield file  # type: ignore[misc]
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_folder(self._path.parent)
        except OSError as error:
            with suppress(OSError):  # of half a line nothing stays, so that the next one can follow
                os.truncate(self._path, size)
            raise UserError(
                f"cannot write {self._path}: {error.strerror}; nothing was released without "
                "being written down"
            ) from error

    def _end_last_line(self) -> None:
        """Complete a last line that lacks only its newline, or remove one that a crash cut off."""
        content = _bytes_of(self._path)
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        with self._written("r+b") as file:
            if _is_whole(content[whole:]):
                file.seek(len(content))
                file.write(b"\n")
            else:
                file.truncate(whole)


def refuse_other_plan(path: Path, ledger: Ledger, plan: Plan) -> None:
    """Refuse the ledger of another plan, apart from α, naming the first difference."""
    before, now = (p.without_layer_scales().to_dict() for p in (ledger.plan, plan))
    for key in sorted(set(now) - {"declarations"}):  # declarations of the head stay
        if before[key] != now[key]:
            raise UserError(
                f"{path} was begun with {key} {before[key]}, but the run has {now[key]}: a ledger "
                "belongs to one run; train into a new directory"
            )


def read_ledger(path: PathLike) -> Ledger:
    """Read a ledger; refuse a damaged line other than a torn last one.

    So is a line that was changed, left out, moved or repeated (`chain.Chain`). A complete last line
    that only lacks its newline counts.
    """
    path = Path(path)
    *lines, rest = _bytes_of(path).split(b"\n")
    if rest and _is_whole(rest):
        lines, rest = [*lines, rest], b""
    if not lines:
        raise UserError(
            f"{path} holds no whole line: the run ended before it released anything, or the file "
            "was emptied since"
        )
    chain = Chain()
    plan = _plan_in(path, _parse(path, 1, lines[0], chain))
    entries: List[Entry] = []
    is_stopped = False
    for number, line in enumerate(lines[1:], start=2):
        value = _parse(path, number, line, chain)
        try:
            if set(value) == {"layer_scales"}:
                plan = plan.with_layer_scales(structure(value, _Scales).layer_scales)
            elif value == _STOPPED:
                is_stopped = True
            else:
                entries.append(Entry.from_dict(value))
                _check(plan, entries[-1])
        except (UserError, ValueError, TypeError) as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    check_poisson_steps(sum(e.event.count for e in entries if e.event.draws.by_chance))
    return Ledger(plan, tuple(entries), bool(rest), chain, is_stopped)


def _plan_in(path: Path, head: Dict[str, Any]) -> Plan:
    """The plan in the first line."""
    try:
        if head.get("version") != VERSION or not isinstance(head.get("plan"), dict):
            raise UserError(f"not the head of a ledger of version {VERSION}")
        plan = Plan.from_dict(head["plan"])
        if plan.release is None:
            raise UserError("the head of the ledger names no release")
        plan.entries()
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"{path}, line 1: {error}") from error
    return plan


def _check(plan: Plan, entry: Entry) -> None:
    """Refuse a readable entry that cannot belong to this plan."""
    sampler, wanted = entry.event.sampler, plan.released.sampler
    if sampler != wanted:
        raise UserError(
            f"an event of sampler {sampler} in a run of sampler {wanted}; the ledger is damaged"
        )
    first, count, steps = entry.first_step, entry.event.count, plan.steps_per_epoch
    if first is not None and first + count > steps:
        raise UserError(
            f"first_step is {first} and count is {count}, but an epoch has "
            f"{count_of(steps, 'step')}; the ledger is damaged"
        )


def refuse_other(path: Path, mark: LedgerMark) -> None:
    """Refuse a ledger that is not the checkpoint's: gone, shortened, changed or another run's."""
    content = _bytes_of(path)[: mark.size]
    if len(content) == mark.size and hashlib.sha256(content).hexdigest() == mark.digest:
        return
    what = "is shorter than" if len(content) < mark.size else "is not the one that lay beside"
    raise UserError(
        f"{path} {what} the checkpoint's: without what it held nobody knows what the run has "
        "spent, and it cannot go on; restore the ledger, or train into a new directory"
    )


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read the ledger {path}: {error.strerror}; without it nobody knows what the "
            "run has spent"
        ) from error


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its newline is a complete object."""
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return False


def _parse(path: Path, number: int, line: bytes, chain: Chain) -> Dict[str, Any]:
    """One whole line, which must be the next of the chain."""
    try:
        value = parse_json(line)
    except ValueError as error:
        raise UserError(
            f"{path}, line {number}: not JSON; the ledger is damaged, and no ε can be read from it"
        ) from error
    if not isinstance(value, dict):
        raise UserError(f"{path}, line {number}: not an entry of a ledger")
    try:
        return chain.check(line, value)
    except UserError as error:
        raise UserError(f"{path}, line {number}: {error}; no ε can be read from it") from error
