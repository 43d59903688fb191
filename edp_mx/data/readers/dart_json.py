"""DART as published: `dart-v1.1.1-full-train.json` and its sisters, triples with their texts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, Iterator, List

from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.readers.replies import assemble_reply
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.quoted_values import quoted
from edp_mx.runtime.json_text import read_json

_PART = re.compile(r"(train|dev|test)\.json$")


def _part_of(file: Path) -> str:
    part = _PART.search(file.name)
    return part[1] if part else file.name


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Read `[{"tripleset": [[subject, relation, object], …], "annotations": [{"text"}, …]}, …]`.

    Each annotation is an utterance, so that several may have the same triples. The release has some
    without a word, which are left out.
    """
    document = read_json(path)
    if not isinstance(document, list):
        raise UserError(f"{path}: not a list of records with a tripleset and annotations")
    for number, record in enumerate(document, start=1):
        place = f"{path}, record {number}"
        with assembler.errors:
            prompt = triples_as_text(_triples(record, place))
            for at, annotation in enumerate(_part(record, "annotations", place), start=1):
                id = f"{id_prefix}/{number}/{at}"
                with assembler.errors:
                    text = annotation.get("text") if isinstance(annotation, dict) else None
                    if not isinstance(text, str):
                        raise UserError(f'{place}: annotation {at} has no "text"')
                    if text.strip():
                        yield assemble_reply(assembler, prompt, text, id=id, place=place)


def triples_as_text(triples: List[List[str]]) -> str:
    """Return triples in the form of `quoted_values`; a subject is written where it changes.

    Names that DART puts in brackets, such as `[TABLECONTEXT]`, are not in a text, and stand bare.

    Example:
        >>> triples_as_text([["Mars Hill", "JOINED", "1973"], ["Mars Hill", "CITY", "Mars Hill"]])
        'subject = "Mars Hill"; JOINED = "1973"; CITY = "Mars Hill"'
    """
    parts: List[str] = []
    before = None
    for subject, relation, value in triples:
        if subject != before:
            parts.append(f"subject = {_value(subject)}")
        parts.append(f"{relation} = {_value(value)}")
        before = subject
    return "; ".join(parts)


def _value(text: str) -> str:
    return text if text.startswith("[") and text.endswith("]") else quoted(text)


def _triples(record: Any, place: str) -> List[Any]:
    triples = _part(record, "tripleset", place)
    if not all(isinstance(each, list) and list(map(type, each)) == [str] * 3 for each in triples):
        raise UserError(f'{place}: "tripleset" is not a list of [subject, relation, object]')
    return triples


def _part(record: Any, key: str, place: str) -> List[Any]:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, list) or not value:
        raise UserError(f'{place}: the list "{key}" is missing or empty')
    return value


_find = partial(
    file_or_folder,
    suffixes=(".json",),
    is_one=lambda file: file.name.startswith("dart-"),
    part_of=_part_of,
)
FORMAT = Format("dart_json", "dart-v1.1.1-full-train.json", _find, _read)
