"""Our own layout: one `{"tokens", "slots", "intent", "id"?, "user"?}` per line, plain or `.gz`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator, List, cast

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, whole_file

_REQUIRED = ("tokens", "slots", "intent")
_KNOWN = (*_REQUIRED, "id", "user")


def read_json_lines(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Streams a JSON-lines file; blank lines are passed over.

    Args:
        id_prefix: where a line brings no id of its own, it is `<id_prefix>/<line>`.

    Raises:
        UserError: a line is not such an object; the sentence names the file and the line.
    """
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
            record["tokens"],
            record["slots"],
            record["intent"],
            id=record.get("id") or f"{id_prefix}/{number}",
            place=place,
            user=record.get("user", ""),
        )


def write_jsonl(path: PathLike, utterances: Iterable[Utterance]) -> int:
    """Streams utterances to a file (`.gz` if so named) that is whole or not there.

    Returns:
        How many were written. The same utterances give the same bytes, also in `.gz`.
    """
    with whole_file(path) as file:
        if not str(path).endswith(".gz"):
            return _write_records(file, utterances)
        # No name and no time inside the archive.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as archive:
            return _write_records(cast(BinaryIO, archive), utterances)


def _write_records(file: BinaryIO, utterances: Iterable[Utterance]) -> int:
    """Writes one line per utterance."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    count = 0
    for count, utterance in enumerate(utterances, start=1):  # noqa: B007 (the last is returned)
        record = {
            "tokens": utterance.tokens,
            "slots": utterance.slots,
            "intent": utterance.intent,
        }
        if utterance.id:
            record["id"] = utterance.id
        if utterance.user:
            record["user"] = utterance.user
        file.write(encode(record).encode("utf-8") + b"\n")
    return count


def _check_record(record: Any, place: str) -> None:
    """Keys and types of one line."""
    if not isinstance(record, dict):
        raise UserError(f'{place}: not an object {{"tokens", "slots", "intent"}}')
    for key in _REQUIRED:
        if key not in record:
            raise UserError(f'{place}: the key "{key}" is missing')
    unknown: List[str] = [key for key in record if key not in _KNOWN]
    if unknown:
        raise UserError(f'{place}: unknown key "{unknown[0]}" ({", ".join(_KNOWN)})')
    for key in ("tokens", "slots"):
        items = record[key]
        if not isinstance(items, list) or not all(isinstance(i, str) and i for i in items):
            raise UserError(f'{place}: "{key}" is not a list of non-empty strings')
    if not isinstance(record["intent"], str) or not isinstance(record.get("id", ""), str):
        raise UserError(f'{place}: "intent" and "id" must be strings')
    user = record.get("user", "somebody")
    if not isinstance(user, str) or not user:
        raise UserError(f'{place}: "user" must be a non-empty string; leave it out where unknown')
