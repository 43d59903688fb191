"""The flat files of a stored corpus: which there are, and how they are made, mapped and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO, List, Mapping, Union

import numpy as np

from edp_mx.data.columns import Columns, Texts
from edp_mx.data.splits import PARTS
from edp_mx.runtime.files import sha256_of

NAMES = "names.json"
DISTINCT = ("tag_names", "intent_names")  # in NAMES
MANY = {"token_names": "names", "user_names": "user_names"}  # which have flat files of their own
KEPT = {
    "offsets": np.int64,
    "tokens": np.int32,
    "tags": np.int32,
    "intents": np.int32,
    "users": np.int32,
    "ids": np.uint8,
    "id_offsets": np.int64,
    "names": np.uint8,
    "names_offsets": np.int64,
    "user_names": np.uint8,
    "user_names_offsets": np.int64,
    "rows": np.int32,
    **dict.fromkeys(PARTS, np.int32),
}
HASHES = {"text_hashes": np.int64, "id_hashes": np.int64}  # removed when all is written
_TYPES = {**KEPT, **HASHES}


def columns_in(folder: Path, names: Mapping[str, List[str]]) -> Columns:
    """The columns of a folder, mapped."""
    columns = ("offsets", "tokens", "tags", "intents", "users")
    offsets, tokens, tags, intents, users = (mapped(folder, name) for name in columns)
    token_names, user_names = (texts_in(folder, f, f"{f}_offsets") for f in MANY.values())
    tag_names, intent_names = (names[name] for name in DISTINCT)
    strings = (token_names, tag_names, intent_names, user_names)
    return Columns(offsets, tokens, tags, intents, users, *strings)


def texts_in(folder: Path, name: str, offsets: str) -> Texts:
    """Ids, or the distinct tokens or users, mapped."""
    return Texts(mapped(folder, name), mapped(folder, offsets))


def mapped(folder: Path, name: str) -> np.ndarray:
    """The array of one file, not read before it is looked at."""
    path = folder / name
    if not path.stat().st_size:  # nothing can be mapped
        return np.empty(0, _TYPES[name])
    return np.asarray(np.memmap(path, dtype=_TYPES[name], mode="r"))


def create(path: Path) -> BinaryIO:
    """A new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write(path: Path, content: Union[bytes, np.ndarray]) -> None:
    """Writes a new file that only its owner can read, and has it on the disk."""
    with create(path) as file:
        file.write(content if isinstance(content, bytes) else np.ascontiguousarray(content).data)
        file.flush()
        os.fsync(file.fileno())


def measure(path: Path) -> List[Any]:
    """Size and SHA-256 of a file."""
    return [path.stat().st_size, sha256_of(path)]
