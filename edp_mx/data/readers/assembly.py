"""What all formats share: lines with their numbers, and the checks that make an utterance."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_BLANKS = re.compile(r"[ \t\r\f\v]+")  # not the no-break space: annotators left it inside tokens


def split_tokens(line: str) -> List[str]:
    """The tokens of a line, cut at ASCII blanks only."""
    return [token for token in _BLANKS.split(line) if token]


def read_bytes_by_line(path: Path) -> Iterator[Tuple[int, bytes]]:
    """Streams (number from 1, line without its end) of a plain or `.gz` file.

    Raises:
        UserError: the file is missing, unreadable, or a torn archive.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.rstrip(b"\r\n")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path}: {reason}") from error


def read_lines(path: Path) -> Iterator[Tuple[int, str]]:
    """As `read_bytes_by_line`, as text; a byte-order mark is left out.

    Raises:
        UserError: a line is not UTF-8; the sentence names the file and the line.
    """
    for number, line in read_bytes_by_line(path):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number}: not UTF-8 text (byte {error.start + 1} of the line); "
                "convert the file to UTF-8"
            ) from error


def span_tags(name: str, count: int) -> List[str]:
    """The BIO tags of one span of `count` tokens.

    Example:
        >>> span_tags("city", 2)
        ['B-city', 'I-city']
    """
    return [f"B-{name}"] + [f"I-{name}"] * (count - 1) if count else []


class Assembler:
    """Checks one utterance after the other, and keeps each distinct string only once."""

    def __init__(self) -> None:
        self._strings: Dict[str, str] = {}
        self._good_tags: Set[str] = {"O"}

    def assemble(
        self,
        tokens: Sequence[str],
        slots: Sequence[str],
        intent: str,
        *,
        id: str,
        place: str,
        user: str = "",
    ) -> Utterance:
        """One checked utterance.

        Args:
            place: file and line, with which every complaint begins.
            user: who said it; empty where the corpus does not say.

        Raises:
            UserError: no token, as many tags as tokens is not the case, a tag that is not BIO, no
                intent.
        """
        if not tokens:
            raise UserError(f"{place}: the utterance is empty; remove it")
        if len(tokens) != len(slots):
            raise UserError(f"{place}: {len(tokens)} tokens but {len(slots)} slot tags")
        if not intent:
            raise UserError(f"{place}: the intent is missing")
        self._check_tags(slots, place)
        keep = self._strings.setdefault
        return Utterance(
            tokens=tuple([keep(token, token) for token in tokens]),
            slots=tuple([keep(tag, tag) for tag in slots]),
            intent=keep(intent, intent),
            id=id,
            user=keep(user, user),
        )

    def _check_tags(self, slots: Sequence[str], place: str) -> None:
        """Each tag is "O", "B-name" or "I-name"; an I- may open a span, as conlleval reads it."""
        for tag in slots:
            if tag in self._good_tags:
                continue
            if tag[:2] not in ("B-", "I-") or len(tag) == 2:
                raise UserError(f"{place}: {tag!r} is not a BIO tag (O, B-name or I-name)")
            self._good_tags.add(tag)
