"""Plain text: one text per line, without labels or slots."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Iterator

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the lines of a text; blank lines are skipped."""
    for number, line in read_lines(path, assembler.errors):
        tokens = split_tokens(line)
        if not tokens:
            continue
        with assembler.errors:
            place, slots = f"{path}, line {number}", ["O"] * len(tokens)
            yield assembler.assemble(tokens, slots, "", id=f"{id_prefix}/{number}", place=place)


_find = partial(file_or_folder, suffixes=(".txt", ".txt.gz"))
FORMAT = Format("text", "*.txt with a text per line", _find, _read)
