"""Plain text: one text per line, without labels or slots."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

from edp_mx.data.readers.assembly import Assembler, read_lines, split_tokens
from edp_mx.data.readers.format import Format, Sources, file_or_folder
from edp_mx.data.utterance import Utterance


def _find(path: Path) -> Sources:
    """Take a file; or `train`, `valid` and `test` of a folder, else all its texts."""
    return file_or_folder(path, (".txt", ".txt.gz"))


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the lines of a text; blank lines are skipped."""
    for number, line in read_lines(path, assembler.errors):
        tokens = split_tokens(line)
        if not tokens:
            continue
        with assembler.errors:
            place, slots = f"{path}, line {number}", ["O"] * len(tokens)
            yield assembler.assemble(tokens, slots, "", id=f"{id_prefix}/{number}", place=place)


FORMAT = Format("text", "*.txt with a text per line", _find, _read)
