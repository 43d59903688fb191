"""Lines that are tied together: each has its number and a hash over itself and all before it."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict

from edp_mx.errors import UserError

_TIED = re.compile(rb'(\{.+), "sha256": "([0-9a-f]{64})"\}', re.DOTALL)


class Chain:
    """The lines so far, as their number and one hash.

    A line is a JSON object whose last members are `line`, its number from 1, and `sha256`: the
    SHA-256 of the hash before it (none before the first) and of the line without this member.

    Guarantee: a line that was changed, left out, put elsewhere or repeated is refused, by its
    number. Edge cases: lines that are missing at the end are not noticed, and neither is a file
    that was written anew from its first line: the hashes have no key.
    """

    def __init__(self) -> None:
        self.count, self.digest = 0, ""

    def add(self, value: Dict[str, Any]) -> bytes:
        """Return the next line for an object, with its newline."""
        numbered = {**value, "line": self.count + 1}
        body = json.dumps(numbered, ensure_ascii=False, allow_nan=False).encode("utf-8")
        self._move_to(body)
        return body[:-1] + f', "sha256": "{self.digest}"}}\n'.encode("ascii")

    def check(self, line: bytes, value: Dict[str, Any]) -> Dict[str, Any]:
        """Return the object that `add` was given.

        Args:
            line: as it stands in the file, without its newline.
            value: the object in it.

        Raises:
            UserError: it is not the line that `add` wrote here.
        """
        tied, given, number = _TIED.fullmatch(line), dict(value), self.count + 1
        if not tied or given.pop("sha256", None) is None:
            raise UserError("no hash ties it to the line before it")
        found = given.pop("line", None)
        if found != number:
            raise UserError(f"it is numbered {found!r}: a line was left out, moved or repeated")
        self._move_to(tied[1] + b"}")
        if self.digest.encode("ascii") != tied[2]:
            raise UserError("its hash is wrong: it was changed after it was written")
        return given

    def _move_to(self, body: bytes) -> None:
        self.count += 1
        self.digest = hashlib.sha256(self.digest.encode("ascii") + body).hexdigest()
