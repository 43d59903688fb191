"""Values as bytes between workers: data and nothing that runs when it is read, unlike a pickle."""

from __future__ import annotations

import io
import json
import math
from typing import Any, BinaryIO, List

import numpy as np

_SIZE = 8  # bytes of the number of the text's bytes
_NO_MESSAGE = (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)


def encode(value: Any) -> bytes:
    """Return a plain value as a JSON text, followed by the bytes of its arrays.

    Raises:
        TypeError: it holds something else than None, truth values, numbers, texts, bytes, arrays,
            and lists, tuples and dicts of these.
    """
    parts: List[bytes] = []
    text = json.dumps(_described(value, parts)).encode("ascii")
    return b"".join([len(text).to_bytes(_SIZE, "little"), text, *parts])


def decode(message: bytes) -> Any:
    """Return the value of a message, with equal types and bits.

    Raises:
        ValueError: it was not written by `encode`.
    """
    parts = io.BytesIO(message)
    try:
        size = int.from_bytes(parts.read(_SIZE), "little")
        value = _built(json.loads(parts.read(size)), parts)
    except _NO_MESSAGE as error:
        raise ValueError(f"not a message of a worker ({error})") from error
    if parts.read(1):
        raise ValueError("not a message of a worker (it is too long)")
    return value


def _described(value: Any, parts: List[bytes]) -> Any:
    """The value for JSON; what JSON has no word for is a mapping of its kind to what it holds."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_described(item, parts) for item in value]
    if kind is tuple:
        return {"tuple": [_described(item, parts) for item in value]}
    if kind is dict:
        return {"dict": [_described(list(pair), parts) for pair in value.items()]}
    if kind is bytes:
        parts.append(value)
        return {"bytes": len(value)}
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        parts.append(value.tobytes())
        name = "array" if isinstance(value, np.ndarray) else "number"
        return {name: [value.dtype.str, list(value.shape)]}
    raise TypeError(f"workers send each other plain values, not {kind.__name__}")


def _built(described: Any, parts: BinaryIO) -> Any:
    """Return the value of a description; `parts` has the bytes of what comes next."""
    if isinstance(described, list):
        return [_built(item, parts) for item in described]
    if not isinstance(described, dict):
        return described
    ((kind, held),) = described.items()
    if kind == "tuple":
        return tuple(_built(held, parts))
    if kind == "dict":
        return dict(_built(held, parts))
    if kind == "bytes":
        return _taken(parts, held)
    dtype, shape = np.dtype(held[0]), held[1]
    if kind not in ("array", "number") or dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"{kind} of {dtype}")
    size = math.prod([dtype.itemsize, *shape])
    array = np.frombuffer(_taken(parts, size), dtype).reshape(shape)
    return array.copy() if kind == "array" else array[()]


def _taken(parts: BinaryIO, size: int) -> bytes:
    taken = parts.read(size)
    if len(taken) != size:
        raise ValueError("it is too short")
    return taken
