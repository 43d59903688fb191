"""JSON that anybody may have written, read within limits; all JSON that is read comes through here.

Python's own reader takes what nothing else can write again: a lone half of a surrogate pair, NaN,
a number of 4,000 digits, a thousand lists within each other. A few megabytes of `[` fill a memory.
Of a key that is there twice it takes the last.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

from edp_mx.errors import UserError
from edp_mx.runtime.files import read_bytes

MOST_BYTES, MOST_NESTED = 2**27, 2**21  # of a text; lists and objects in it
MOST_DEPTH, MOST_DIGITS = 100, 30
_LONG_NUMBER = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")
_HALF = re.compile(  # of a surrogate pair, as an escape, where no backslash is one itself
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class NotJSON(ValueError):
    """A text that is no JSON, or none that is read here: why, and the line where it is known."""

    def __init__(self, reason: str, line: Optional[int] = None) -> None:
        super().__init__(reason)
        self.line = line


def parse_json(text: Union[str, bytes]) -> Any:
    """Return the value in a text, which must be UTF-8 if it comes as bytes.

    Raises:
        NotJSON: it is none, holds NaN, Infinity, half a character, a key twice or a number of more
            than 30 digits, or is larger or more deeply nested than anything that is read here.
    """
    if len(text) > MOST_BYTES:
        raise NotJSON(f"longer than {MOST_BYTES:,} bytes")
    if isinstance(text, bytes):
        text = _decoded(text)
    nested = text.count("[") + text.count("{")
    if nested > MOST_NESTED:
        raise NotJSON(f"more than {MOST_NESTED:,} lists and objects")
    reader = _CAREFUL_READER if _LONG_NUMBER.search(text) else _READER
    try:
        value = reader.decode(text)
    except json.JSONDecodeError as error:
        what = error.msg[:-3] if error.msg.endswith(" at") else error.msg
        raise NotJSON(f"{what} at column {error.colno}", error.lineno) from error
    except RecursionError as error:
        raise NotJSON("nested too deeply") from error
    half = _HALF.search(text.replace("\\\\", "  "))
    if half:
        line = text.count("\n", 0, half.start()) + 1
        raise NotJSON("half a character, an escaped surrogate without its other half", line)
    if nested > MOST_DEPTH:
        _check_depth(value)
    return value


def json_in(text: Union[str, bytes], place: str) -> Any:
    """Return the value in a text; refuse other than JSON with its place, such as file and line."""
    try:
        return parse_json(text)
    except NotJSON as error:
        raise UserError(f"{place}: not JSON ({error})") from error


def read_json(path: Any) -> Any:
    """Read a JSON file; errors name the file and the line."""
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"{path} is not a file")
    return json_of(read_bytes(path, MOST_BYTES + 1), path)


def json_of(content: Union[str, bytes], path: Path) -> Any:
    """Return the value in the content of a file; errors name the file and the line."""
    try:
        return parse_json(content)
    except NotJSON as error:
        line = f", line {error.line}" if error.line else ""
        raise UserError(f"{path}{line}: not JSON ({error})") from error


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotJSON(f"not UTF-8 text, byte {error.start}", line) from error


def _check_depth(value: Any) -> None:
    """Refuse values nested too deeply."""
    level, depth = [value], 0
    while level:
        if depth > MOST_DEPTH:
            raise NotJSON(f"nested more than {MOST_DEPTH} deep")
        inner: list = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        level, depth = inner, depth + 1


def _refuse(constant: str) -> Any:
    raise NotJSON(f"{constant} is no number of JSON's")


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotJSON(f"a number of {len(digits)} digits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotJSON(f"{text[:MOST_DIGITS]} is more than a number can hold")
    return value


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise NotJSON(f"the key {twice!r} is there twice")
    return value


_READER = json.JSONDecoder(parse_constant=_refuse, parse_float=_number, object_pairs_hook=_object)
_CAREFUL_READER = json.JSONDecoder(
    parse_constant=_refuse, parse_float=_number, parse_int=_whole_number, object_pairs_hook=_object
)
