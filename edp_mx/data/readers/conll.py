"""CoNLL: a token and its BIO tag per line, and a blank line between utterances.

The form of xSID and of MultiATIS++ beside it: comments such as `# intent: alarm/set` come before
an utterance, and a line may begin with the place of its token.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler, decoded, read_bytes_by_line
from edp_mx.data.readers.columns_config import NONE
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

MOST_ROWS = 2**16  # of an utterance
_SUFFIXES = tuple(
    f".{name}{end}" for name in ("conll", "conllu", "bio", "iob") for end in ("", ".gz")
)
_COMMENT = re.compile(r"#\s*([\w.-]+)\s*[:=]\s*(.*)")
_TAG = re.compile(r"O|[BI]-\S+")

Block = List[Tuple[int, bytes]]  # the numbered lines of an utterance


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the utterances of a file; comments without tokens below them are passed over."""
    rows = _Rows(assembler)
    for block in _blocks(path):
        number = block[0][0]
        place = f"{path}, line {number}"
        with assembler.errors:
            lines = [(at, decoded(line, at, path)) for at, line in block]
            utterance = rows.read(lines, path, id=f"{id_prefix}/{number}", place=place)
            if utterance is not None:
                yield utterance


def _blocks(path: Path) -> Iterator[Block]:
    """Stream what stands between blank lines."""
    block: Block = []
    for number, line in read_bytes_by_line(path):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
        if len(block) > MOST_ROWS:
            raise UserError(
                f"{path}, line {number}: {MOST_ROWS:,} lines without a blank one; utterances need "
                "a blank line between them"
            )
    if block:
        yield block


class _Rows:
    """Makes an utterance of the lines between two blank ones.

    The first utterance of a file decides how many columns there are, and whether the first of three
    or more counts the tokens.
    """

    def __init__(self, assembler: Assembler) -> None:
        self._assembler, self._names = assembler, assembler.columns
        self._width, self._is_counted = 0, False

    def read(
        self, lines: List[Tuple[int, str]], path: Path, *, id: str, place: str
    ) -> Optional[Utterance]:
        """Return the utterance; None if the lines are comments about no utterance."""
        comments: Dict[str, str] = {}
        rows: List[List[str]] = []
        for number, line in lines:
            if not rows and _is_comment(line):
                match = _COMMENT.match(line)
                comments.update({match[1]: match[2].strip()} if match else {})
                continue
            rows.append(_cells(line))
            self._check(rows, f"{path}, line {number}")
        intent = self._comment("intent", comments)
        if not rows:
            if intent:
                raise UserError(f"{place}: an intent without tokens in the lines below it")
            return None
        if intent is None and self._names.intent != NONE:
            raise UserError(
                f'{place}: no comment "# {self._names.intent or "intent"}: …" stands above the '
                "tokens; data.columns.intent can name another, and none reads no intents"
            )
        at = self._column("tokens", 1 + self._is_counted, place)
        tags = ["O"] * len(rows)
        if self._names.slots != NONE:
            last = self._column("slots", self._width, place)
            tags = [row[last] for row in rows]
        user = self._comment("user", comments)
        if user is None and self._names.user is not None:
            raise UserError(
                f'{place}: no comment "# {self._names.user}: …" stands above the tokens'
            )
        tokens = [row[at] for row in rows]
        return self._assembler.assemble(tokens, tags, intent or "", id=id, place=place, user=user)

    def _check(self, rows: List[List[str]], place: str) -> None:
        """Refuse the last of the rows if its columns are others than those of the first ones."""
        row = rows[-1]
        if not self._width:
            self._width, self._is_counted = len(row), len(row) > 2 and row[0] == "1"
        if len(row) != self._width or "" in row:
            raise UserError(
                f"{place}: {sum(map(bool, row))} columns, but the file begins with {self._width}"
            )
        if self._is_counted and row[0] != str(len(rows)):
            raise UserError(
                f"{place}: the first column has {row[0]!r} in place of {len(rows)}, the place of "
                "the token in its utterance"
            )

    def _comment(self, field: str, comments: Dict[str, str]) -> Optional[str]:
        return comments.get(getattr(self._names, field) or field)

    def _column(self, field: str, default: int, place: str) -> int:
        """Return the place of a column, from 0, which the settings may give from 1."""
        named = getattr(self._names, field) or str(default)
        if not named.isdecimal() or not 1 <= int(named[:9]) <= self._width:
            raise UserError(
                f"{place}: data.columns.{field} must be the number of a column, 1 to "
                f"{self._width}, not {named!r}"
            )
        return int(named[:9]) - 1


def _is_comment(line: str) -> bool:
    """Return whether a line is a comment, and not that of the token `#` or `#1`."""
    if not line.startswith("#"):
        return False
    if "\t" not in line and _COMMENT.match(line):
        return True
    cells = _cells(line)
    return len(cells) < 2 or not _TAG.fullmatch(cells[-1])


def _cells(line: str) -> List[str]:
    """Return the columns of a line, cut at tabs if it has one, else at blanks."""
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else split_tokens(line)


_find = partial(file_or_folder, suffixes=_SUFFIXES)
FORMAT = Format("conll", "*.conll with a token and its BIO tag per line", _find, _read)
