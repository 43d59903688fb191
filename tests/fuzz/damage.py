"""Damage to files: bytes that change, go or come, and values that nobody would write."""

import copy
import json

NASTY = [
    b"", b"\0", b"\xff\xfe", b"\xe9", b"\xed\xa0\x80", b"\n", b"\r", b"\t", b",", b";", b":", b'"',
    b"'", b"{", b"}", b"[", b"]", b"&a", b"*a", b"!!int x", b"!!timestamp x", b"2001-99-99",
    b"NaN", b"Infinity", b"-1", b"0", b"1e308", b"1e999", b"-1e-320", b"9" * 40, b"9" * 5000,
    b"0x" + b"f" * 5000, b"true", b"null", b"~", b"~/../../x", b"/etc/passwd", b"\x1b[2J",
    b"\\ud800", b"\\u0000", b"[" * 1200, b"{" * 1200, b"{\"a\":" * 1200, b"- " * 1200,
    b"\xe2\x80\xa8", b"\xc2\x85", b"B-", b"I-x", b"__label__", b" " * 3000, b"1 " * 3000,
]  # fmt: skip
VALUES = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 1e-320, 10**12, 10**29, 2**63, "", "x", "0",
    "../x", "\0", "\x1b[2J", "é" * 50, [], {}, [[]], [None], {"a": 1}, ["x"] * 50, [1, 2], {"": {}},
]  # fmt: skip


def damaged(content, draw):
    """The content with one to four faults.

    Args:
        draw: a `random.Random`.
    """
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(_FAULTS)(content, draw)
    return content


def damaged_json(content, draw):
    """The same for JSON, or JSON lines: mostly a value that is another, or one that is missing."""
    if draw.random() < 0.3:
        return damaged(content, draw)
    lines = content.split(b"\n") if content.count(b"\n{") else [content]
    at = draw.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except ValueError:
        return damaged(content, draw)
    for _ in range(draw.choice((1, 1, 2))):
        value = _change(value, draw)
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines)


def _change(value, draw):
    """Replace, remove or repeat something, at any depth."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value or ()))) if (
        isinstance(value, list)) else []  # fmt: skip
    if not inner or draw.random() < 0.15:
        return copy.deepcopy(draw.choice(VALUES))
    key = draw.choice(inner)
    what = draw.random()
    if what < 0.15:
        value.pop(key)
    elif what < 0.2 and isinstance(value, dict):
        value[draw.choice(("x", "", "epsilon", "__class__"))] = copy.deepcopy(draw.choice(VALUES))
    elif what < 0.25 and isinstance(value, list):
        value.append(value[key])
    else:
        value[key] = _change(value[key], draw)
    return value


def _place(content, draw):
    return draw.randrange(len(content) + 1)


def _part(content, draw):
    start = _place(content, draw)
    return start, min(len(content), start + draw.choice((1, 2, 8, 100, 10_000)))


def _flip(content, draw):
    if not content:
        return content
    at = draw.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]


def _set(content, draw):
    if not content:
        return content
    at = draw.randrange(min(len(content), draw.choice((64, 400, 1 << 30))))
    return content[:at] + bytes([draw.choice((0, 1, 127, 128, 255))]) + content[at + 1 :]


def _insert(content, draw):
    at = _place(content, draw)
    return content[:at] + draw.choice(NASTY) + content[at:]


def _replace_number(content, draw):
    """A number, or a word, becomes another one."""
    at = _place(content, draw)
    end = at
    while end < len(content) and content[end : end + 1].isalnum():
        end += 1
    return content[:at] + draw.choice(NASTY) + content[end:]


def _delete(content, draw):
    start, end = _part(content, draw)
    return content[:start] + content[end:]


def _repeat(content, draw):
    start, end = _part(content, draw)
    return content[:end] + content[start:end] * draw.choice((1, 3)) + content[end:]


def _cut(content, draw):
    return content[: _place(content, draw)]


def _drop_line(content, draw):
    lines = content.split(b"\n")
    lines.pop(draw.randrange(len(lines)))
    return b"\n".join(lines)


def _swap_lines(content, draw):
    lines = content.split(b"\n")
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _fill(content, draw):
    start, end = _part(content, draw)
    return content[:start] + bytes([draw.choice((0, 255))]) * (end - start) + content[end:]


_FAULTS = [
    _flip, _flip, _set, _set, _insert, _insert, _replace_number, _replace_number, _delete, _repeat,
    _cut, _drop_line, _swap_lines, _fill,
]  # fmt: skip
