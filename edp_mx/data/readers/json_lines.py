"""Our own format: one `{"tokens", "slots", "intent", "id"?, "user"?}` per line, plain or `.gz`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator, Optional

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.readers.format import (
    Format,
    Sources,
    relative_sources,
    single_file,
    sources_by_part,
)
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_REQUIRED = ("tokens", "slots", "intent")
_KNOWN = (*_REQUIRED, "id", "user")
_SUFFIXES = (".jsonl", ".jsonl.gz")


def _find(path: Path) -> Sources:
    """Take a file; or `train.jsonl`, `valid.jsonl` and `test.jsonl`, else all files of a folder."""
    if path.is_file():
        return single_file(path, *_SUFFIXES)

    def part(name: str) -> Optional[Path]:
        return next((p for s in _SUFFIXES if (p := path / f"{name}{s}").is_file()), None)

    every = sorted(found for suffix in _SUFFIXES for found in path.glob(f"*{suffix}"))
    return sources_by_part(part) or relative_sources(path, {"": every})


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream a JSON-lines file; blank lines are skipped."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"{place}: not JSON ({error})") from error
        _check_record(record, place)
        yield assembler.assemble(
            *(record[key] for key in _REQUIRED),
            id=record.get("id") or f"{id_prefix}/{number}",
            place=place,
            user=record.get("user", ""),
        )


def _check_record(record: Any, place: str) -> None:
    if not isinstance(record, dict):
        raise UserError(f'{place}: not an object {{"tokens", "slots", "intent"}}')
    for key in _REQUIRED:
        if key not in record:
            raise UserError(f'{place}: the key "{key}" is missing')
    for key in record:
        if key not in _KNOWN:
            raise UserError(f'{place}: unknown key "{key}" ({", ".join(_KNOWN)})')
    for key in ("tokens", "slots"):
        items = record[key]
        if not isinstance(items, list) or not all(isinstance(i, str) and i for i in items):
            raise UserError(f'{place}: "{key}" is not a list of non-empty strings')
    if not isinstance(record["intent"], str) or not isinstance(record.get("id", ""), str):
        raise UserError(f'{place}: "intent" and "id" must be strings')
    user = record.get("user", "somebody")
    if not isinstance(user, str) or not user:
        raise UserError(f'{place}: "user" must be a non-empty string; leave it out where unknown')


FORMAT = Format("json_lines", "*.jsonl", _find, _read)
