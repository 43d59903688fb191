"""Utterances that are written to unnamed files as they come, one file per column."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence

import numpy as np

from edp_mx.data.columns import Numbers, encoded
from edp_mx.data.ids import digest_of
from edp_mx.data.strata import split_text
from edp_mx.data.utterance import Utterance

NAMES = ("token_names", "tag_names", "intent_names", "user_names")
_TYPES = {
    "offsets": np.int64,
    "tokens": np.int32,
    "tags": np.int32,
    "intents": np.int32,
    "users": np.int32,
    "text_hashes": np.int64,
    "id_hashes": np.int64,
    **dict.fromkeys(("ids", *NAMES), np.uint8),
    **dict.fromkeys((f"{name}_offsets" for name in ("ids", *NAMES)), np.int64),
}
_FLUSH = 10_000  # utterances that are written together


class Spool(ExitStack):
    """Columns that grow on the disk; memory follows the distinct strings alone.

    The files have no names: they are gone when the process is, however it ends. `sizes` counts the
    utterances of each part.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._numbers = {name: Numbers() for name in NAMES}
        self._waiting: List[Utterance] = []
        self._files: Dict[str, Any] = {}
        for name in _TYPES:
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by the stack)
            self._files[name] = self.enter_context(file)
        self._ends = {name: 0 for name in _TYPES if name.endswith("offsets")}
        for name in self._ends:
            self._files[name].write(bytes(8))
        self.sizes: Dict[str, int] = {}

    def add(self, part: str, utterance: Utterance) -> None:
        self.sizes[part] = self.sizes.get(part, 0) + 1
        self._waiting.append(utterance)
        if len(self._waiting) == _FLUSH:
            self._flush()

    def arrays(self) -> Dict[str, np.ndarray]:
        """Write the rest, and map all columns."""
        self._flush()
        for name, numbers in self._numbers.items():
            self._write_texts(name, numbers)
        self._numbers.clear()
        return {name: self._mapped(name) for name in _TYPES}

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        tokens, tags, intents, users = self._numbers.values()
        self._write("text_hashes", [digest_of(split_text(u)) for u in waiting])
        self._write("id_hashes", [digest_of(u.id) for u in waiting])
        self._write_ends("offsets", [len(u.tokens) for u in waiting])
        self._write("tokens", [tokens[t] for u in waiting for t in u.tokens])
        self._write("tags", [tags[t] for u in waiting for t in u.slots])
        self._write("intents", [intents[u.intent] for u in waiting])
        self._write("users", [users[u.user] for u in waiting])
        self._write_texts("ids", (u.id for u in waiting))

    def _write(self, name: str, numbers: Sequence[int]) -> None:
        self._files[name].write(np.array(numbers, _TYPES[name]).tobytes())

    def _write_ends(self, name: str, lengths: List[int]) -> None:
        ends = np.cumsum([self._ends[name], *lengths])
        self._ends[name] = int(ends[-1])
        self._write(name, ends[1:].tolist())

    def _write_texts(self, name: str, texts: Iterable[str]) -> None:
        content = [encoded(text) for text in texts]
        self._files[name].write(b"".join(content))
        self._write_ends(f"{name}_offsets", [len(text) for text in content])

    def _mapped(self, name: str) -> np.ndarray:
        self._files[name].flush()
        if self._files[name].tell() == 0:  # nothing can be mapped
            return np.empty(0, _TYPES[name])
        return np.asarray(np.memmap(self._files[name], dtype=_TYPES[name], mode="r"))
