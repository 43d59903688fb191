"""Text with one sentence per line, read and written as a stream."""

from __future__ import annotations

import gzip
import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Iterable, Iterator
from unicodedata import category, normalize

from edp_mx.data.readers.assembly import read_lines
from edp_mx.runtime.files import PathLike, whole_file

LEAST, SHARE = 3, 0.1  # texts in common, at least, and of the texts of the smaller corpus


def lines_of(path: Path) -> Iterator[str]:
    """Yield the non-blank lines of a plain or `.gz` file, without blanks at their ends."""
    return (line for _, text in read_lines(path) if (line := text.strip()))


def letters_of(line: str) -> str:
    """Return the letters, marks and digits of a line, in lower case and one Unicode form.

    They are the same however its words are cut ("don 't" or "don't").
    """
    folded = normalize("NFKC", normalize("NFKC", line).casefold())
    return "".join(sign for sign in folded if category(sign)[0] in "LMN")


def digest(line: str) -> int:
    """Return 64 bits of the letters of a line, or of itself if it has none."""
    said = (letters_of(line) or line).encode()
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big")


def is_large_share(shared: int, smaller: int) -> bool:
    """Return whether two corpora count as the same, of whose texts so many are in both.

    Args:
        smaller: how many texts the smaller of the two has.
    """
    return shared >= max(LEAST, SHARE * smaller)


def write_lines(path: PathLike, lines: Iterable[str]) -> int:
    """Write lines as UTF-8, compressed if the name ends in .gz; whole or not at all. Count them."""
    return _write(path, (" ".join(line.split()) for line in lines))


def write_json_lines(path: PathLike, records: Iterable[Any]) -> int:
    """Write a JSON value per line, as `write_lines` writes lines. Count them."""
    return _write(path, (json.dumps(record, ensure_ascii=False) for record in records))


def _write(path: PathLike, lines: Iterable[str]) -> int:
    count = 0
    with whole_file(path) as file, _compressed(file, str(path)) as out:
        for line in lines:
            out.write(f"{line}\n".encode())
            count += 1
    return count


def _compressed(file: Any, name: str) -> Any:
    """Return the file itself, or a stream that compresses into it, without a time stamp."""
    return gzip.GzipFile("", "wb", 6, file, mtime=0) if name.endswith(".gz") else nullcontext(file)
