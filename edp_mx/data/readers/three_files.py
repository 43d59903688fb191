"""Three parallel files: `seq.in` (tokens), `seq.out` (BIO tags), `label` (intent)."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Iterator

from edp_mx.data.readers.assembly import Assembler, read_lines, split_tokens
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

THREE_FILES = TOKENS_FILE, TAGS_FILE, INTENTS_FILE = "seq.in", "seq.out", "label"


def is_three_files(folder: Path) -> bool:
    """Whether a folder holds this layout."""
    return (folder / TOKENS_FILE).is_file()


def read_three_files(folder: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Streams one folder of `seq.in`, `seq.out` and `label`, one utterance a line.

    Args:
        id_prefix: ids are `<id_prefix>/<line>`, for example "train/17".

    Raises:
        UserError: a file is missing, the files differ in length, or a line is broken.

    Edge cases:
        Trailing blanks mean nothing. Two intents joined by "#" (ATIS) stay one label. Lines that
        are empty in all three files at their end are left out.
    """
    for name in THREE_FILES:
        if not (folder / name).is_file():
            raise UserError(
                f"{folder / name} is missing: this layout needs {TOKENS_FILE}, {TAGS_FILE} and "
                f"{INTENTS_FILE} side by side"
            )
    rows = zip_longest(*(read_lines(folder / n) for n in THREE_FILES))
    empty_since = 0
    for number, row in enumerate(rows, start=1):
        if all(item is None or not item[1].strip() for item in row):
            empty_since = empty_since or number
            continue
        place = f"{folder / TOKENS_FILE}, line {number}"
        if empty_since:
            place = f"{folder / TOKENS_FILE}, line {empty_since}"
            raise UserError(f"{place}: the utterance is empty; remove it from all three files")
        for name, item in zip(THREE_FILES, row):
            if item is None:
                raise UserError(
                    f"{folder / name} ends after line {number - 1}, but the files beside it have "
                    f"a line {number}: {TOKENS_FILE}, {TAGS_FILE} and {INTENTS_FILE} need one "
                    "line for each utterance"
                )
        tokens, tags, intent = (item[1] for item in row)
        yield assembler.assemble(
            split_tokens(tokens),
            split_tokens(tags),
            intent.strip(),
            id=f"{id_prefix}/{number}" if id_prefix else str(number),
            place=place,
        )
