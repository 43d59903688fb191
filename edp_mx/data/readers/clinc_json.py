"""CLINC150 as published: `data_full.json` and its sisters, one file with all parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Iterator

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.readers.format import Format, Sources
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import json_of

_NAME = re.compile(r"data_(full|small|imbalanced|oos_plus)\.json(\.gz)?")
_PARTS = {"train": "train", "val": "validation", "test": "test"}  # theirs → ours


def _find(path: Path) -> Sources:
    """Take a file by its name, or the only such file of a folder."""
    files = [path] if path.is_file() else sorted(path.glob("data_*.json*"))
    found = [file for file in files if _NAME.fullmatch(file.name)]
    if len(found) > 1:
        raise UserError(f"{path} holds {found[0].name} and {found[1].name}; name one of them")
    return {
        ours: [(file, theirs) for theirs in (part, f"oos_{part}")]
        for file in found
        for part, ours in _PARTS.items()
    }


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Read one part of a file `{"train": [["text", "intent"], …], "oos_train": …, …}`.

    Utterances out of scope have the intent `oos`.
    """
    document = json_of("\n".join(line for _, line in read_lines(path)), path)
    rows: Any = document.get(id_prefix) if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise UserError(f'{path}: the list "{id_prefix}" is missing')
    for number, row in enumerate(rows, start=1):
        place = f"{path}, utterance {number} of {id_prefix}"
        with assembler.errors:
            if not (isinstance(row, list) and list(map(type, row)) == [str, str]):
                raise UserError(f'{place}: not a pair ["text", "intent"]')
            tokens = split_tokens(row[0])
            yield assembler.assemble(
                tokens, ["O"] * len(tokens), row[1], id=f"{id_prefix}/{number}", place=place
            )


FORMAT = Format("clinc_json", "data_full.json", _find, _read)
