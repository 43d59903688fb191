"""Requests and answers as bytes, by h11."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Optional
from urllib.parse import unquote

import h11

from edp_mx.serving.messages import Answer, Refused, Request

MOST_BYTES = 1 << 20  # of a request's body
MOST_HEADER_BYTES = 1 << 14
_TARGET = re.compile(r"(?:http://([^/?#]*))?(/[^?#]*)?(?:[?#].*)?", re.I)


def new_protocol() -> h11.Connection:
    """Return the reader of the requests of one connection."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADER_BYTES)


def head_of(event: h11.Request) -> Request:
    """Return a request without its body.

    Raises:
        Refused: its length is stated twice, or is too large; its target is not a path.
    """

    def values_of(name: bytes) -> list:
        return [value.decode("latin-1") for found, value in event.headers if found == name]

    lengths = values_of(b"content-length")
    if lengths and values_of(b"transfer-encoding"):
        raise Refused("400 Bad Request", "send Content-Length or Transfer-Encoding, not both")
    if lengths and int(lengths[0]) > MOST_BYTES:  # of at most 20 digits
        raise too_large()
    target = _TARGET.fullmatch(event.target.decode("latin-1"))
    if target is None:
        raise Refused("400 Bad Request", "the target is no path")
    hosts = values_of(b"host") if target[1] is None else [target[1]]
    return Request(
        method=event.method.decode(),
        path=unquote(target[2] or "/"),
        host="".join(hosts),
        kind=", ".join(values_of(b"content-type")),
    )


def too_large() -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused("413 Content Too Large", f"a body has at most {MOST_BYTES} bytes")


def not_http(error: h11.RemoteProtocolError) -> Refused:
    """Return the refusal of a request that h11 cannot read."""
    status = HTTPStatus(error.error_status_hint)
    return Refused(f"{status.value} {status.phrase}", "the request is not valid HTTP")


def written(
    protocol: h11.Connection, answer: Answer, *, is_head: bool = False, is_last: bool
) -> bytes:
    """Return an answer as bytes; of one in parts the head alone, which `part_of` follows.

    Args:
        is_head: the body was not asked for.
        is_last: the connection ends with it.
    """
    if protocol.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
        return b""
    number, _, reason = answer.status.partition(" ")
    headers = [
        ("Content-Type", answer.kind),
        *([("Content-Length", str(len(answer.body)))] if answer.parts is None else []),
        ("Date", formatdate(usegmt=True)),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src data:"),
        *answer.headers,
        *([("Connection", "close")] if is_last else []),
    ]
    head = h11.Response(status_code=int(number), reason=reason, headers=headers)
    data = protocol.send(head) or b""
    if answer.parts is not None:
        return data
    if not is_head:
        data += part_of(protocol, answer.body)
    return data + part_of(protocol, None)


def part_of(protocol: h11.Connection, data: Optional[bytes]) -> bytes:
    """Return a part of an answer's body as bytes; None ends it."""
    event = h11.EndOfMessage() if data is None else h11.Data(data=data)
    return protocol.send(event) or b""
