"""Shared by the readers: numbered lines, tagged chunks, and the checks that make an utterance."""

from __future__ import annotations

import gzip
import os
import zlib
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple
from unicodedata import normalize

from edp_mx.data.readers.columns_config import NONE, ColumnsConfig
from edp_mx.data.readers.record_errors import RecordErrors, UnreadableRest
from edp_mx.data.tokenization import split_words
from edp_mx.data.utterance import Utterance
from edp_mx.dp.accounting.units import name_of
from edp_mx.errors import UserError
from edp_mx.metrics.spans import balanced
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.json_text import json_in
from edp_mx.runtime.limits import MOST_COUNTED

Chunk = Tuple[str, Optional[str]]  # text, and its slot name, or None outside of all slots
MOST_OF_A_LINE = 2**20  # bytes
MOST_INFLATION, ALWAYS_READ = 100, 2**26  # times the size of a compressed file; bytes


def most_of_a_line() -> int:
    """Return how long a line of text may be: `$EDP_MX_MAX_LINE` bytes, or 1 MB."""
    named = os.environ.get("EDP_MX_MAX_LINE", "")
    if not named:
        return MOST_OF_A_LINE
    if not named.isdecimal() or not 0 < int(named[:20]) <= MOST_COUNTED:
        raise UserError(f"EDP_MX_MAX_LINE is {named!r}; it must be a whole number above 0")
    return int(named)


def read_bytes_by_line(path: Path) -> Iterator[Tuple[int, bytes]]:
    """Stream (number from 1, line without its end) of a plain or `.gz` file.

    Raises:
        UnreadableRest: it cannot be read, has a line beyond `most_of_a_line`, or a `.gz` file would
            become a hundred times as large as it is, so that it holds no text.
    """
    most, total = most_of_a_line(), 0
    try:
        if path.exists() and not path.is_file():
            raise UnreadableRest(f"{path} is not a file")
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            largest = max(MOST_INFLATION * path.stat().st_size, ALWAYS_READ)
            for number in count(1):
                line = file.readline(most + 2)
                if not line:
                    return
                line, total = line.rstrip(b"\r\n"), total + len(line)
                if len(line) > most:
                    raise UnreadableRest(
                        f"{path}, line {number}: longer than {most:,} bytes; EDP_MX_MAX_LINE=… "
                        "allows more"
                    )
                if total > largest and path.suffix == ".gz":
                    raise UnreadableRest(
                        f"{path}, line {number}: it holds more than {largest:,} bytes, which is "
                        "no text that was compressed; unpack it if it is"
                    )
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableRest(f"cannot read {path}: {reason}") from error


def read_lines(path: Path, errors: Optional[RecordErrors] = None) -> Iterator[Tuple[int, str]]:
    """Stream the lines of `read_bytes_by_line` as text, without a byte-order mark.

    Args:
        errors: where each line is a record, what is done with one that is not UTF-8.
    """
    errors = errors or RecordErrors()
    for number, line in read_bytes_by_line(path):
        with errors:
            yield number, decoded(line, number, path)


def read_json_lines(
    path: Path, errors: Optional[RecordErrors] = None
) -> Iterator[Tuple[int, str, Any]]:
    """Stream (number, place, value) of the lines of `read_lines`; blank ones are skipped."""
    errors = errors or RecordErrors()
    for number, line in read_lines(path, errors):
        if line.strip():
            place = f"{path}, line {number}"
            with errors:
                yield number, place, json_in(line, place)


def decoded(line: bytes, number: int, path: Path) -> str:
    """Return a line as text, the first one without a byte-order mark; refuse other than UTF-8."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 text (byte {error.start + 1} of the line); "
            "convert the file to UTF-8"
        ) from error


def refuse_repeated(names: Sequence[str], place: str) -> None:
    """Refuse a header in which two columns have one name: only one of them would be read."""
    for name in names:
        if name and names.count(name) > 1:
            raise UserError(f'{place}: two columns are named "{name}"; rename one of them')


def tag_chunks(chunks: Iterable[Chunk]) -> Tuple[List[str], List[str]]:
    """Return the tokens and BIO tags of chunks of text; no token crosses the edge of a chunk.

    Example:
        >>> tag_chunks([("fly to", None), ("new york", "city")])
        (['fly', 'to', 'new', 'york'], ['O', 'O', 'B-city', 'I-city'])
    """
    tokens: List[str] = []
    tags: List[str] = []
    for text, slot in chunks:
        words = split_words(text)
        tokens += words
        first, inside = ("O", "O") if slot is None else (f"B-{slot}", f"I-{slot}")
        tags += [first if at == 0 else inside for at in range(len(words))]
    return tokens, tags


class Assembler:
    """Checks one utterance after the other, and keeps each distinct string only once.

    Args:
        columns: which keys or columns hold what; by default the usual ones.
        errors: what is done with an error in a record; by default it is raised.
        file_errors: the same for an error that ends the reading of its file.

    Attributes:
        slots_place: file and line of the first record of the corpus, which decides for all whether
            they have slots (`records`).
        has_slots: what it decided; None before it was read.
        replies_place, has_replies: the same of whether a prompt and its reply are read of each.
    """

    def __init__(
        self,
        columns: Optional[ColumnsConfig] = None,
        errors: Optional[RecordErrors] = None,
        file_errors: Optional[RecordErrors] = None,
    ) -> None:
        self.columns = columns or ColumnsConfig()
        self.errors = errors or RecordErrors()
        self.file_errors = file_errors or RecordErrors()
        self.has_slots: Optional[bool] = None
        self.slots_place = ""
        self.has_replies: Optional[bool] = None
        self.replies_place = ""
        self._strings: Dict[str, str] = {}
        self._good_pairs: Set[Tuple[str, str]] = set()  # of a tag and the one before it

    def assemble(
        self,
        tokens: Sequence[str],
        slots: Sequence[str],
        intent: str,
        *,
        id: str,
        place: str,
        user: Optional[str] = None,
    ) -> Utterance:
        """Return one checked utterance; `place`, file and line, begins every error.

        Args:
            user: who said it, None where that is unknown.
        """
        if user is not None:
            user = name_of(user)
            if not user:
                raise UserError(f"{place}: the user is empty; leave it out where unknown")
        if not tokens:
            raise UserError(f"{place}: the utterance is empty; remove it")
        if len(tokens) != len(slots):
            both = f"{count_of(len(tokens), 'token')} but {count_of(len(slots), 'slot tag')}"
            raise UserError(f"{place}: {both}")
        intent = name_of(intent)
        if not "".join(slots).isascii():
            slots = [normalize("NFC", tag) for tag in slots]
        if self.columns.intent == NONE:
            intent = ""
        elif not intent:
            raise UserError(
                f"{place}: the intent or label is missing; a corpus without any is read by "
                "data.columns.intent: none (--columns intent=none)"
            )
        if self.columns.slots == NONE:
            slots = ["O"] * len(tokens)
        tags = self._check_tags(slots, place)
        keep = self._strings.setdefault
        return Utterance(
            tokens=tuple([keep(token, token) for token in tokens]),
            slots=tuple([keep(tag, tag) for tag in tags]),
            intent=keep(intent, intent),
            id=id,
            user=keep(user, user) if user else "",
        )

    def _check_tags(self, slots: Sequence[str], place: str) -> Sequence[str]:
        """Return the tags with every slot opened by B-, or refuse those that are not."""
        for pair in zip(("O", *slots), slots):
            if pair in self._good_pairs:
                continue
            before, tag = pair
            if tag != "O" and (tag[:2] not in ("B-", "I-") or len(tag) == 2):
                raise UserError(f"{place}: {tag!r} is not a BIO tag (O, B-name or I-name)")
            if tag[:1] != "I" or before[1:] == tag[1:]:
                self._good_pairs.add(pair)
            elif self.columns.unbalanced == "refuse":
                raise UserError(
                    f"{place}: {tag!r} continues no slot of this name, which "
                    "data.columns.unbalanced refuses; begin the slot with B-, or set it to repair"
                )
            else:
                return self._check_tags(balanced(slots), place)
        return slots
