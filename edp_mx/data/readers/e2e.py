"""E2E as published: `trainset.csv`, `devset.csv` and `testset_w_refs.csv` with `mr` and `ref`."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Iterator, List

from edp_mx.data.readers.assembly import Assembler, read_lines
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.readers.replies import assemble_reply
from edp_mx.data.readers.table import table_rows
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.quoted_values import quoted

_PARTS = {"trainset": "train", "devset": "dev", "testset_w_refs": "test"}  # theirs → usual names
_NAMES = {"mr", "ref"}
_SLOT = re.compile(r"([^,\[\]]+)\[([^\[\]]*)\]\s*(?:,\s*|$)")


def _part_of(file: Path) -> str:
    stem = file.name.partition(".csv")[0]
    return _PARTS.get(stem, stem)


def _has_columns(path: Path) -> bool:
    """Return whether a header has both; `testset.csv` of the release has no references."""
    _, header = next(read_lines(path), (1, ""))
    return {name.strip(' "') for name in header.split(",")} >= _NAMES


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the rows, each with one reference; several rows may have the same table."""
    rows = table_rows(path, assembler.errors)
    next(rows, None)  # the header
    for number, row in rows:
        place, id = f"{path}, line {number}", f"{id_prefix}/{number}"
        with assembler.errors:
            prompt = meaning_as_text(row["mr"], place)
            yield assemble_reply(assembler, prompt, row["ref"], id=id, place=place)


def meaning_as_text(meaning: str, place: str) -> str:
    """Return `name[The Mill], familyFriendly[yes]` in the form of `quoted_values`.

    Example:
        >>> meaning_as_text("name[The Mill], familyFriendly[yes]", "trainset.csv, line 2")
        'name = "The Mill"; familyFriendly = yes'
    """
    slots: List[str] = []
    at = 0
    while at < len(meaning) or not slots:
        match = _SLOT.match(meaning, at)
        if match is None:
            raise UserError(f'{place}: "mr" is not of the form name[value], name[value]')
        slots.append(f"{match[1].strip()} = {quoted(match[2])}")
        at = match.end()
    return "; ".join(slots)


_find = partial(file_or_folder, suffixes=(".csv", ".csv.gz"), is_one=_has_columns, part_of=_part_of)
FORMAT = Format("e2e", "trainset.csv with mr and ref", _find, _read)
