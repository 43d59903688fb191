"""Values as bytes between workers: data and nothing that runs when it is read, unlike a pickle."""

from __future__ import annotations

import json
from typing import Any, List

import numpy as np

_SIZE = 8  # bytes of the number of the text's bytes


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
    rest = memoryview(message)[_SIZE:]
    end = int.from_bytes(message[:_SIZE], "little")
    try:
        described = json.loads(bytes(rest[:end]))
        parts = _Parts(rest[end:])
        value = _built(described, parts)
    except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a message of a worker ({error})") from error
    if parts.left:
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


class _Parts:
    """The bytes behind the text, taken from the front."""

    def __init__(self, left: memoryview) -> None:
        self.left = left

    def take(self, size: int) -> bytes:
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) != size:
            raise ValueError("it is too short")
        return bytes(taken)


def _built(described: Any, parts: _Parts) -> Any:
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
        return parts.take(held)
    dtype, shape = np.dtype(held[0]), held[1]
    if kind not in ("array", "number") or dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"{kind} of {dtype}")
    size = dtype.itemsize
    for length in shape:
        size *= length
    array = np.frombuffer(parts.take(size), dtype).reshape(shape)
    return array.copy() if kind == "array" else array[()]
