"""Parallel files, one line per utterance: `seq.in`, `seq.out` (BIO tags), `label`, maybe `user`."""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path
from typing import Iterator, List

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.readers.format import Format, Sources, sources_by_part
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

THREE_FILES = TOKENS_FILE, TAGS_FILE, INTENTS_FILE = "seq.in", "seq.out", "label"
USERS_FILE = "user"


def _find(path: Path) -> Sources:
    """Take the folder itself, or its folders `train`, `valid` and `test`."""
    if (path / TOKENS_FILE).is_file():
        return {"": [(path, "")]}
    folders = [found.parent for found in path.glob(f"[!.]*/{TOKENS_FILE}")]
    return sources_by_part({folder.name: folder for folder in folders})


def _parallel_files(folder: Path) -> List[Path]:
    users = folder / USERS_FILE
    return [*(folder / name for name in THREE_FILES), *([users] if os.path.lexists(users) else [])]


def _read(folder: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream one folder, one utterance per line; lines that are empty in all files end it."""
    for name in THREE_FILES:
        if not (folder / name).is_file():
            needed = ", ".join(THREE_FILES)
            raise UserError(f"{folder / name} is missing: {needed} belong side by side")
    files = _parallel_files(folder)
    rows = zip_longest(*map(read_lines, files))
    empty_since = 0
    for number, row in enumerate(rows, start=1):
        if all(item is None or not item[1].strip() for item in row):
            empty_since = empty_since or number
            continue
        place = f"{folder / TOKENS_FILE}, line {number}"
        if any(item is not None and "\r" in item[1] for item in row):
            raise UserError(
                f"{place}: a carriage return within the line, here or in a file beside it; let "
                "lines end with a line feed"
            )
        with assembler.errors:
            if empty_since:
                empty = f"{folder / TOKENS_FILE}, line {empty_since}"
                raise UserError(f"{empty}: the utterance is empty; remove it from all files")
        empty_since = 0
        for file, item in zip(files, row):
            if item is None:
                names = ", ".join(file.name for file in files)
                raise UserError(
                    f"{file} ends after line {number - 1}, but the files beside it have a line "
                    f"{number}: {names} need one line for each utterance"
                )
        tokens, tags, intent, *users = (item[1] for item in row)
        with assembler.errors:
            yield assembler.assemble(
                split_tokens(tokens),
                split_tokens(tags),
                intent.strip(),
                id=f"{id_prefix}/{number}" if id_prefix else str(number),
                place=place,
                user=users[0] if users else None,
            )


FORMAT = Format("three_files", "seq.in, seq.out and label", _find, _read, _parallel_files, depth=2)
