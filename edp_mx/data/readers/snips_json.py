"""SNIPS as published: `<Intent>/train_<Intent>_full.json` and `validate_<Intent>.json`."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler, Chunk, tag_chunks
from edp_mx.data.readers.format import Format, Sources, relative_sources, single_file
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import read_bytes
from edp_mx.runtime.json_text import MOST_BYTES, json_of


def _find(path: Path) -> Sources:
    """Take a file, or one file per part and intent, the full one where there is one."""
    if path.is_file():
        return single_file(path, ".json")
    files: Dict[str, List[Path]] = {"train": [], "test": []}
    for intent_folder in sorted(p for p in path.iterdir() if p.is_dir()):
        name = intent_folder.name
        for part, candidates in (
            ("train", (f"train_{name}_full.json", f"train_{name}.json")),
            ("test", (f"validate_{name}.json",)),
        ):
            present = [p for p in (intent_folder / c for c in candidates) if os.path.lexists(p)]
            files[part] += present[:1]
    return relative_sources(path, files)


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Read one file `{"Intent": [{"data": [{"text", "entity"?}]}]}`, UTF-8 or Latin-1.

    Tokens are cut at blanks and at the edges of entities: one that ends in mid-word ("song" + "s
    please") gives two tokens, so that a span is exactly what was annotated.
    """
    document, numbers = _read_document(path), count(1)  # of all intents
    for intent, records in document.items():
        if not isinstance(records, list):
            raise UserError(f'{path}: "{intent}" is not a list of utterances')
        for number, record in enumerate(records, start=1):
            place = f"{path}, utterance {number} of {intent}"
            id = f"{id_prefix}/{next(numbers)}"
            with assembler.errors:
                tokens, tags = tag_chunks(_join_chunks(_chunks(record, place)))
                yield assembler.assemble(tokens, tags, intent, id=id, place=place)


def _read_document(path: Path) -> Dict[str, Any]:
    """Read JSON in either of the two encodings in which it was published."""
    content = read_bytes(path, MOST_BYTES + 1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    document = json_of(text, path)
    if not isinstance(document, dict):
        raise UserError(
            f'{path}, line 1: not an object {{"Intent": [...]}}; records belong in a .jsonl file, '
            "one object on each line"
        )
    return document


def _chunks(record: Any, place: str) -> List[Chunk]:
    data = record.get("data") if isinstance(record, dict) else None
    if not isinstance(data, list):
        raise UserError(f'{place}: the list "data" is missing')
    chunks: List[Chunk] = []
    for chunk in data:
        text = chunk.get("text") if isinstance(chunk, dict) else None
        entity = chunk.get("entity") if isinstance(chunk, dict) else None
        if not isinstance(text, str) or not (entity is None or isinstance(entity, str)):
            raise UserError(f'{place}: a chunk lacks its "text", or its "entity" is not a string')
        chunks.append((text, entity.strip() or None if entity else None))
    return chunks


def _join_chunks(chunks: List[Chunk]) -> List[Chunk]:
    """Join neighbours of one kind that meet in mid-word ("Rom" + "ántica")."""
    joined: List[Tuple[List[str], Optional[str]]] = []
    for text, entity in chunks:
        if joined and text and joined[-1][1] == entity:
            previous = joined[-1][0][-1]
            if previous and not previous[-1].isspace() and not text[0].isspace():
                joined[-1][0].append(text)
                continue
        joined.append(([text], entity))
    return [("".join(texts), entity) for texts, entity in joined]


FORMAT = Format("snips_json", "<Intent>/train_<Intent>_full.json", _find, _read, depth=2)
