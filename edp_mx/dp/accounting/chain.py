"""Lines that are tied together: each has its number and a hash over itself and all before it."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, List, Mapping

from edp_mx.errors import UserError

_TIED = re.compile(rb'(\{.+), "sha256": "([0-9a-f]{64})"\}', re.DOTALL)


class Chain:
    """The lines so far, as their hashes.

    A line is a JSON object whose last members are `line`, its number from 1, and `sha256`: the
    SHA-256 of the hash before it (none before the first) and of the line without this member.

    Guarantee: a line that was changed, left out, put elsewhere or repeated is refused, by its
    number. Edge cases: lines that are missing at the end are not noticed here, but by whoever knows
    `end`; a file that was written anew from its first line is not: the hashes have no key.
    """

    def __init__(self) -> None:
        self._digests: List[str] = []

    @property
    def end(self) -> Dict[str, Any]:
        """The number of lines and the hash of the last, which confirm all of them."""
        return {"lines": len(self._digests), "sha256": self._last}

    def has(self, end: Mapping[str, Any]) -> bool:
        """Return whether an `end` belongs to these lines or to the first ones of them."""
        return self._digests[end["lines"] - 1 : end["lines"]] == [end["sha256"]]

    @property
    def _last(self) -> str:
        return self._digests[-1] if self._digests else ""

    def add(self, value: Dict[str, Any]) -> bytes:
        """Return the next line for an object, with its newline."""
        numbered = {**value, "line": len(self._digests) + 1}
        body = json.dumps(numbered, ensure_ascii=False, allow_nan=False).encode("utf-8")
        self._move_to(body)
        return body[:-1] + f', "sha256": "{self._last}"}}\n'.encode("ascii")

    def copy(self) -> Chain:
        """Return one that goes on by itself."""
        found = Chain()
        found._digests = self._digests.copy()
        return found

    def check(self, line: bytes, value: Dict[str, Any]) -> Dict[str, Any]:
        """Return the object that `add` was given.

        Raises:
            UserError: it is not the line that `add` wrote here.
        """
        tied, given, number = _TIED.fullmatch(line), dict(value), len(self._digests) + 1
        if not tied or given.pop("sha256", None) is None:
            raise UserError("no hash ties it to the line before it")
        found = given.pop("line", None)
        if found != number:
            raise UserError(f"it is numbered {found!r}: a line was left out, moved or repeated")
        self._move_to(tied[1] + b"}")
        if self._last.encode("ascii") != tied[2]:
            raise UserError("its hash is wrong: it was changed after it was written")
        return given

    def _move_to(self, body: bytes) -> None:
        self._digests.append(hashlib.sha256(self._last.encode("ascii") + body).hexdigest())
