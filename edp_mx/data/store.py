"""A corpus as a folder of flat files: written in one pass over the text, mapped into memory."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Mapping, Tuple

import numpy as np

from edp_mx.data.columns import Columns, Numbers
from edp_mx.data.fingerprint import Fingerprint, hashed_text
from edp_mx.data.splits import PARTS, Split, folded_text
from edp_mx.data.stored import StoredUtterances
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.files import sha256_of

META, NAMES = "meta.json", "names.json"
_TYPES = {
    "offsets": np.int64,
    "tokens": np.int32,
    "tags": np.int32,
    "intents": np.int32,
    "ids": np.uint8,
    "id_offsets": np.int64,
    "rows": np.int64,
    **dict.fromkeys(PARTS, np.int64),
}
_NAMES = ("token_names", "tag_names", "intent_names")
_FLUSH = 10_000  # utterances that are written together

# sizes of the parts as read, texts and intents as numbers → places of the utterances, their split
Arrange = Callable[[Dict[str, int], np.ndarray, np.ndarray], Tuple[np.ndarray, Split]]


class Torn(Exception):
    """A folder that is not, or no longer, what was written."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A corpus that lies in files.

    Attributes:
        fingerprints: of "train", "validation", "test", and of "corpus", which is one after the
            other.
    """

    utterances: StoredUtterances
    split: Split
    fingerprints: Mapping[str, str]


def write_store(
    folder: Path,
    utterances: Iterable[Tuple[str, Utterance]],
    arrange: Arrange,
    *,
    on_utterances: Callable[[int], None] = lambda _: None,
) -> None:
    """Writes a corpus into an empty folder, in memory that hardly grows with it.

    Args:
        utterances: each with the part in which it was read; taken once.
        on_utterances: told of how many are done, now and then.

    Raises:
        UserError: an id occurs twice.
        OSError: the disk is full.

    Edge cases: an utterance costs 16 bytes of memory while it is written, and about 50 while the
    split is drawn; a distinct token costs about 100.
    """
    with _Writer(folder) as writer:
        for count, (part, utterance) in enumerate(utterances, start=1):
            writer.add(part, utterance)
            if count % _FLUSH == 0:
                writer.flush()
                on_utterances(count)
    columns, ids = _columns(folder, writer.names()), _ids(folder)
    writer.refuse_repeated_ids(StoredUtterances(columns, *ids, np.arange(len(columns))))
    rows, split = arrange(writer.sizes, np.frombuffer(writer.texts, np.int64), columns.intents)
    _write(folder / "rows", rows.astype(np.int64).tobytes())
    for part in PARTS:
        _write(folder / part, getattr(split, part).astype(np.int64).tobytes())
    _write(folder / NAMES, json.dumps(writer.names()).encode("ascii"))
    prints = _fingerprints(StoredUtterances(columns, *ids, rows), split, on_utterances)
    files = {path.name: _measure(path) for path in sorted(folder.iterdir())}
    meta = {"fingerprints": prints, "files": files}
    _write(folder / META, json.dumps(meta, indent=2).encode("ascii"))


def open_store(folder: Path) -> Stored:
    """Maps a stored corpus; every byte of it is checked before.

    Raises:
        Torn: a file is missing or is not what was written.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
        files, prints = dict(meta["files"]), dict(meta["fingerprints"])
        if set(files) != {*_TYPES, NAMES} or set(prints) != {*PARTS, "corpus"}:
            raise Torn(f"{META} lists other files")
        for name, measure in files.items():
            if _measure(folder / name) != measure:
                raise Torn(f"{name} has changed")
        names = json.loads((folder / NAMES).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Torn(f"{error}") from error
    columns, rows = _columns(folder, names), _map(folder, "rows")
    split = Split(*(_map(folder, part) for part in PARTS))
    return Stored(StoredUtterances(columns, *_ids(folder), rows), split, prints)


class _Writer:
    """Utterances as they come, some thousands at a time.

    Attributes:
        texts, ids: eight bytes an utterance, the hashes of its tokens and of its id.
        sizes: how many were read in each part.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = {name: Numbers() for name in _NAMES}
        self._waiting: List[Utterance] = []
        self._tokens = self._bytes = 0
        self.texts, self.ids = bytearray(), bytearray()
        self.sizes: Dict[str, int] = {}

    def __enter__(self) -> _Writer:
        self._stack = ExitStack()
        names = ("offsets", "tokens", "tags", "intents", "ids", "id_offsets")
        self._files: Dict[str, BinaryIO] = {
            name: self._stack.enter_context(_create(self._folder / name)) for name in names
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
        self.texts += _digest(folded_text(utterance))
        self.ids += _digest(utterance.id)
        self._waiting.append(utterance)

    def flush(self) -> None:
        """Writes what waits."""
        waiting, self._waiting = self._waiting, []
        tokens, tags, intents = (self._numbers[name] for name in _NAMES)
        ids = [u.id.encode("utf-8", "surrogatepass") for u in waiting]
        ends = self._tokens + np.cumsum([len(u.tokens) for u in waiting], dtype=np.int64)
        id_ends = self._bytes + np.cumsum([len(id) for id in ids], dtype=np.int64)
        columns = {
            "offsets": ends,
            "tokens": np.array([tokens[t] for u in waiting for t in u.tokens], np.int32),
            "tags": np.array([tags[t] for u in waiting for t in u.slots], np.int32),
            "intents": np.array([intents[u.intent] for u in waiting], np.int32),
            "id_offsets": id_ends,
            "ids": np.frombuffer(b"".join(ids), np.uint8),
        }
        for name, column in columns.items():
            self._files[name].write(column.tobytes())
        if waiting:
            self._tokens, self._bytes = int(ends[-1]), int(id_ends[-1])

    def names(self) -> Dict[str, List[str]]:
        """The distinct strings."""
        return {name: list(numbers) for name, numbers in self._numbers.items()}

    def refuse_repeated_ids(self, utterances: StoredUtterances) -> None:
        """Ids must be unique; where two hashes are equal, the ids themselves are compared."""
        hashes = np.frombuffer(self.ids, np.int64)
        ordered = np.sort(hashes)
        suspect = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        seen = set()
        for utterance in utterances.at(np.flatnonzero(np.isin(hashes, suspect))):
            if utterance.id in seen:
                raise UserError(f"data: the id {utterance.id!r} occurs twice; ids must be unique")
            seen.add(utterance.id)


def _fingerprints(
    utterances: StoredUtterances, split: Split, on_utterances: Callable[[int], None]
) -> Dict[str, str]:
    """What `fingerprint` finds of each part, and of all of them one after the other."""
    whole, found, count = Fingerprint(), {}, 0
    for part in PARTS:
        alone = Fingerprint()
        for utterance in utterances.at(getattr(split, part)):
            text = hashed_text(utterance)
            alone.add_text(text)
            whole.add_text(text)
            count += 1
            if count % _FLUSH == 0:
                on_utterances(count)
        found[part] = alone.digits()
    return {**found, "corpus": whole.digits()}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _columns(folder: Path, names: Mapping[str, List[str]]) -> Columns:
    offsets, tokens, tags, intents = (
        _map(folder, name) for name in ("offsets", "tokens", "tags", "intents")
    )
    return Columns(offsets, tokens, tags, intents, *(names[name] for name in _NAMES))


def _ids(folder: Path) -> Tuple[np.ndarray, np.ndarray]:
    return _map(folder, "ids"), _map(folder, "id_offsets")


def _map(folder: Path, name: str) -> np.ndarray:
    """The array of one file, not read before it is looked at."""
    path = folder / name
    if not path.stat().st_size:  # nothing can be mapped
        return np.empty(0, _TYPES[name])
    return np.asarray(np.memmap(path, dtype=_TYPES[name], mode="r"))


def _create(path: Path) -> BinaryIO:
    """A new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write(path: Path, content: bytes) -> None:
    with _create(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _measure(path: Path) -> List[Any]:
    """Size and SHA-256 of a file."""
    return [path.stat().st_size, sha256_of(path)]
