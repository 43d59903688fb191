"""Finished runs and kept records below folders, filtered and sorted."""

from __future__ import annotations

import difflib
import fnmatch
import json
import logging
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runs.file_types import Record, Results
from edp_mx.runs.record import ADDED, record_of, run_id, validation_cost
from edp_mx.runs.record_files import RUNS, is_record, name_of, records_in, walk
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.structured import structure_file, unstructure

logger = logging.getLogger(__name__)
_FIELDS = ("name", "hash", "results_version", "date", "corpus", "family", "mechanism", "delta",
           "n", "epochs", "steps", "seconds", "workers")  # fmt: skip


class Found(NamedTuple):
    """A record and where it is: a run directory, a file, or a file and its name in that."""

    place: Path
    record: Record

    @property
    def is_run(self) -> bool:
        return self.place.is_dir()

    def as_json(self) -> Dict[str, Any]:
        """Return a value for strict JSON: the record, its place, and the source of its ε."""
        source = "ledger" if self.record.is_counted else "record"
        return {"place": str(self.place), **unstructure(self.record), "epsilon_from": source}


def collect(paths: Sequence[Path]) -> List[Found]:
    """Return what is at, or anywhere below, each path, without what is there twice.

    A record whose run is there as well is left out. `is_counted` says whether an ε was counted from
    the ledger of a run; else it is what a record states.
    """
    found: Dict[str, Found] = {}
    for path in paths:
        if not path.exists():
            raise UserError(f"there is no {path}: name a run, a folder of runs or a record")
        for each in _below(path):
            said = unstructure(each.record)
            said = {k: value for k, value in said.items() if k not in ADDED}
            key = run_id(each.record) if each.is_run else repr(sorted(said.items()))
            found.setdefault(key, each)
    return [each for each in found.values() if each.is_run or run_id(each.record) not in found]


def records_below(path: Path) -> List[Record]:
    """Return the records in a file or below a folder, none if it is not there."""
    return [found.record for found in collect([path])] if path.exists() else []


def _below(path: Path) -> Iterator[Found]:
    if path.is_file():
        found = list(_in_file(path))
        if not found:
            raise UserError(f"{path} is not a record of a run, such as `edp-mx runs keep` writes")
        yield from found
        return
    for folder, files in walk(path):
        if "config.yaml" in files:
            run = RunDirectory(folder)
            try:
                if run.has("results"):
                    run.load(Results)  # which refuses a damaged one
                    yield Found(folder, record_of(run))
            except UserError as error:
                if folder == path:  # the one that was asked for
                    raise
                logger.warning("%s is left out: %s", folder, error)
            continue
        for name in files:
            if name == RUNS or name.endswith(".json"):
                yield from _in_file(folder / name)


def _in_file(path: Path) -> Iterator[Found]:
    """The records in a file with a record a line, or with a single one; none if it has others."""
    if path.suffix == ".jsonl":
        for each in records_in(path, Record):
            yield Found(path / name_of(each), each)
    elif is_record(record := read_json(path)):
        yield Found(path, structure_file(record, Record, path))


def where(texts: Sequence[str]) -> Callable[[Record], bool]:
    """Return the filter that `key=value` texts describe, all of which must hold.

    A key is one of a record's or a setting's (`training.epochs`); a value may be a pattern.
    """
    wanted: List[Tuple[str, str]] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--where {text}: write it as key=value, e.g. --where corpus=snips")
        if key not in (*_FIELDS, "task") and "." not in key:
            near = difflib.get_close_matches(key, _FIELDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_FIELDS)}"
            raise UserError(f"--where {text}: there is no {key}; {hint} or a setting's dotted key")
        wanted.append((key, value))
    return lambda record: all(_is_like(value_of(record, key), value) for key, value in wanted)


def value_of(record: Record, key: str) -> Any:
    """Return a field of a record, or a setting by its dotted key: its value, or its default."""
    if key in _FIELDS:
        return getattr(record, key)
    if key in record.settings:
        return record.settings[key]
    from edp_mx.config import default_of  # a setting that was left at its default

    return default_of(key, record.family)


def _is_like(value: Any, wanted: str) -> bool:
    """Return whether a value is the wanted one, as a number or as a text."""
    try:
        return float(value) == float(wanted)
    except (TypeError, ValueError):
        said = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
        return fnmatch.fnmatchcase(said, wanted)


SORTS: Dict[str, Callable[[Record], Any]] = {  # the best, the first or the newest on top
    "name": lambda record: record.name,
    "date": lambda record: -int(record.date.replace("-", "") or 0),
    "score": lambda record: record.task.cost(record.test),
    "validation": validation_cost,
    "epsilon": lambda record: record.holds.number.log,
    "seconds": lambda record: record.seconds,
}


def select(found: Sequence[Found], wheres: Sequence[str], sort: str = "name") -> List[Found]:
    """Return the runs that meet all of `wheres`, sorted."""
    holds = where(wheres)
    return sorted(
        (each for each in found if holds(each.record)), key=lambda each: SORTS[sort](each.record)
    )
