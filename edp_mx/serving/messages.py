"""The messages of a server: requests, answers, refusals."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Iterable, List, NamedTuple, Optional, Tuple


class Request(NamedTuple):
    """A whole request.

    Attributes:
        host: of the header or of the target, as it was sent; "" if there is none.
        kind: the content type.
        here: the address of this machine that the client has reached.
    """

    method: str
    path: str
    host: str = ""
    kind: str = ""
    body: bytes = b""
    here: str = ""


class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        parts: of a body that is sent as it is made, in place of `body`.
    """

    body: bytes
    kind: str
    status: str = "200 OK"
    headers: List[Tuple[str, str]] = []
    parts: Optional[AsyncIterator[bytes]] = None


class Refused(Exception):
    """A request that is not answered: HTTP status and a sentence for whoever sent it."""

    def __init__(self, status: str, sentence: str, *headers: Tuple[str, str]) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, list(headers)

    def answer(self) -> Answer:
        return as_json({"error": str(self)}, self.status, self.headers)


def as_json(value: Any, status: str = "200 OK", headers: Iterable[Tuple[str, str]] = ()) -> Answer:
    return Answer(json_bytes(value), "application/json", status, [*headers])


def json_bytes(value: Any) -> bytes:
    """Return a value as strict JSON on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def busy() -> Refused:
    """Return the refusal of a request that is too much at the moment."""
    return Refused("503 Service Unavailable", "too busy; try again", ("Retry-After", "1"))
