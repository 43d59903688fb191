"""Kept records: `runs.jsonl` and `attacks.jsonl` of a folder, a record a line, in a fixed order."""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple, Type, TypeVar, Union

from edp_mx.errors import UserError
from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.file_types import Record
from edp_mx.runs.record import run_id
from edp_mx.runtime.files import read_bytes, write_text
from edp_mx.runtime.json_text import json_in
from edp_mx.runtime.structured import structure_file, unstructure

RUNS, ATTACKS = "runs.jsonl", "attacks.jsonl"
_OF_A_RUN = ("config.yaml", "record.json")
Kept = TypeVar("Kept", Record, AttackRecord)


def name_of(record: Record) -> str:
    """Return the name of a record: its run's name, the hash of its settings and its run's id."""
    name = re.sub(r"[^\w.-]+", "_", record.name)
    return f"{name}-{record.hash}-{run_id(record)}"


def is_record(value: Any) -> bool:
    return isinstance(value, dict) and {"results_version", "settings", "test"} <= set(value)


def read_lines(path: Path) -> Iterator[Union[Record, AttackRecord]]:
    """Yield the records of a file with one on each line, of runs or of attacks.

    Raises:
        UserError: a line is torn or is no record; it names the file and the line.
    """
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        if line:
            place = f"{path}, line {number}"
            value = json_in(line, place)
            if is_record(value):
                yield structure_file(value, Record, place)
            elif isinstance(value, dict) and {"attack", "attacked_run", "success"} <= set(value):
                yield structure_file(value, AttackRecord, place)
            else:
                raise UserError(f"{place} is no record, such as `edp-mx runs keep` writes")


def records_in(path: Path, kind: Type[Kept]) -> Iterator[Kept]:
    """Yield those records of one kind that a file with one on each line has."""
    return (each for each in read_lines(path) if isinstance(each, kind))


def walk(path: Path) -> Iterator[Tuple[Path, List[str]]]:
    """Yield each folder below one with its files, but nothing inside a run or kept records."""
    for name, folders, files in os.walk(path):
        if {RUNS, ATTACKS, *_OF_A_RUN} & set(files):
            folders.clear()
        folders.sort()
        yield Path(name), sorted(files)


def is_run(files: Iterable[str]) -> bool:
    """Return whether a folder with these files is a run's."""
    return bool(set(_OF_A_RUN) & set(files))


def put_runs(path: Path, records: Iterable[Record]) -> None:
    """Add the records of runs to a file; each takes the place of its run's record there."""
    _put(path, Record, records, key=run_id, order=name_of)


def put_attacks(path: Path, records: Iterable[AttackRecord]) -> None:
    """Add the records of attacks to a file, as `put_runs` does those of runs."""
    _put(path, AttackRecord, records, key=key_of_attack, order=key_of_attack)


def key_of_attack(record: AttackRecord) -> Tuple[str, ...]:
    """Return which run was attacked, and how; of an old one the id of the run may be unknown."""
    chosen = json.dumps(record.chosen, sort_keys=True)
    return record.name, record.attacked_run, record.run, record.attack, chosen


def _put(
    path: Path,
    kind: Type[Kept],
    records: Iterable[Kept],
    *,
    key: Callable[[Kept], Any],
    order: Callable[[Kept], Any],
) -> None:
    records = list(records)
    if not records:
        return
    with _alone_in(path.parent):
        kept: Dict[Any, Kept] = {}
        for each in read_lines(path) if path.exists() else ():
            if not isinstance(each, kind):
                raise UserError(f"{path} holds other records, too: move those to their own file")
            kept[key(each)] = each
        kept.update((key(each), each) for each in records)
        ordered = sorted(kept.values(), key=order)
        values = map(unstructure, ordered)
        lines = (json.dumps(each, ensure_ascii=False, allow_nan=False) for each in values)
        write_text(path, "".join(f"{line}\n" for line in lines))


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no other process adds records to a file there at the same time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
