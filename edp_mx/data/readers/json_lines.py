"""JSON lines, plain or `.gz`: our own, Hugging Face's records, and text with spans.

Ours are `{"tokens", "slots", "intent", "id"?, "user"?}`; `data.columns` says what others have.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator

from edp_mx.data.readers.assembly import Assembler, read_json_lines
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.readers.records import RecordReader
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_KNOWN = ("tokens", "slots", "intent", "id", "user")
_OWN = frozenset(_KNOWN[:3])


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream a JSON-lines file; blank lines are skipped.

    Edge cases: the ids of other records than ours are not read, since each part of a Hugging Face
        dataset counts them anew.
    """
    reader = RecordReader(assembler, "key")
    for number, place, record in read_json_lines(path, assembler.errors):
        with assembler.errors:
            if not isinstance(record, dict):
                raise UserError(f'{place}: not an object {{"tokens", "slots", "intent"}}')
            names = reader.names_among(record, place)
            own_id = _check_own(record, names, place) if record.keys() >= _OWN else None
            yield reader.read(record, names, id=own_id or f"{id_prefix}/{number}", place=place)


def _check_own(record: Any, names: Dict[str, str], place: str) -> Any:
    """Return the id of a record of ours; refuse one with a key that we do not know."""
    for key in record:
        if key not in _KNOWN and key not in names.values():
            raise UserError(f'{place}: unknown key "{key}" ({", ".join(_KNOWN)})')
    if not isinstance(record.get("id", ""), str):
        raise UserError(f'{place}: "id" must be a string')
    return record.get("id")


_find = partial(file_or_folder, suffixes=(".jsonl", ".jsonl.gz"))
FORMAT = Format("json_lines", "*.jsonl", _find, _read)
