"""Utterances that are written to flat files as they come."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Dict, List

import numpy as np

from edp_mx.data.columns import Numbers, encoded
from edp_mx.data.store_files import DISTINCT, HASHES, MANY, create, mapped, texts_in, write
from edp_mx.data.strata import folded_text
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError


class Writer:
    """Utterances as they come, some thousands at a time.

    Memory follows the distinct strings alone. Beside the columns, the hashes of texts and ids are
    written, eight bytes per utterance each.

    Attributes:
        sizes: how many were read in each part.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = {name: Numbers() for name in (*MANY, *DISTINCT)}
        self._waiting: List[Utterance] = []
        self._tokens = self._bytes = 0
        self.sizes: Dict[str, int] = {}

    def __enter__(self) -> Writer:
        self._stack = ExitStack()
        columns = ("offsets", "tokens", "tags", "intents", "users")
        names = (*columns, "ids", "id_offsets", *HASHES)
        self._files: Dict[str, BinaryIO] = {
            name: self._stack.enter_context(create(self._folder / name)) for name in names
        }
        for name in ("offsets", "id_offsets"):
            self._files[name].write(bytes(8))
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        with self._stack:
            if kind is None:
                self.flush()
                for file in self._files.values():
                    file.flush()
                    os.fsync(file.fileno())

    def add(self, part: str, utterance: Utterance) -> None:
        """Takes one in."""
        self.sizes[part] = self.sizes.get(part, 0) + 1
        self._files["text_hashes"].write(_digest(folded_text(utterance)))
        self._files["id_hashes"].write(_digest(utterance.id))
        self._waiting.append(utterance)

    def flush(self) -> None:
        """Writes what waits."""
        waiting, self._waiting = self._waiting, []
        tokens, users, tags, intents = self._numbers.values()
        ids = [encoded(u.id) for u in waiting]
        ends = self._tokens + np.cumsum([len(u.tokens) for u in waiting], dtype=np.int64)
        id_ends = self._bytes + np.cumsum([len(id) for id in ids], dtype=np.int64)
        columns = {
            "offsets": ends,
            "tokens": np.array([tokens[t] for u in waiting for t in u.tokens], np.int32),
            "tags": np.array([tags[t] for u in waiting for t in u.slots], np.int32),
            "intents": np.array([intents[u.intent] for u in waiting], np.int32),
            "users": np.array([users[u.user] for u in waiting], np.int32),
            "id_offsets": id_ends,
            "ids": np.frombuffer(b"".join(ids), np.uint8),
        }
        for name, column in columns.items():
            self._files[name].write(column.tobytes())
        if waiting:
            self._tokens, self._bytes = int(ends[-1]), int(id_ends[-1])

    def write_names(self) -> Dict[str, List[str]]:
        """Writes the distinct tokens and users; returns the distinct tags and intents."""
        for name, file in MANY.items():
            texts = [encoded(text) for text in self._numbers[name]]
            ends = np.cumsum([0] + [len(text) for text in texts], dtype=np.int64)
            write(self._folder / file, b"".join(texts))
            write(self._folder / f"{file}_offsets", ends)
        return {name: list(self._numbers[name]) for name in DISTINCT}


def refuse_repeated_ids(folder: Path) -> None:
    """Ids must be unique; where two hashes are equal, the ids themselves are compared.

    Raises:
        UserError: an id occurs twice.
    """
    hashes = mapped(folder, "id_hashes")
    ordered = np.sort(hashes)
    suspect = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    ids = texts_in(folder, "ids", "id_offsets")
    seen = set()
    for row in np.flatnonzero(np.isin(hashes, suspect)).tolist() if len(suspect) else ():
        id = ids[row]
        if id in seen:
            raise UserError(f"data: the id {id!r} occurs twice; ids must be unique")
        seen.add(id)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(encoded(text), digest_size=8).digest()
