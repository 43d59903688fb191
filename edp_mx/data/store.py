"""A corpus as a folder of flat files: written in one pass over the text, mapped into memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

import numpy as np

from edp_mx.data.columns import Columns
from edp_mx.data.fingerprint import Fingerprint, hashed_text
from edp_mx.data.splits import PARTS, Split
from edp_mx.data.store_files import (
    HASHES,
    KEPT,
    NAMES,
    columns_in,
    mapped,
    measure,
    texts_in,
    write,
)
from edp_mx.data.store_writer import Writer, refuse_repeated_ids
from edp_mx.data.stored import StoredUtterances
from edp_mx.data.users import names_users, users_of
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

META = "meta.json"
_FLUSH = 10_000  # utterances that are written together
_MOST = 2**31 - 1  # utterances whose places are int32

# sizes of the parts as read; users (or texts) and intents as numbers → places of the utterances,
# their split
Arrange = Callable[[Dict[str, int], np.ndarray, np.ndarray], Tuple[np.ndarray, Split]]


# put around what is read, with a word and, where it is known, how many: e.g. a progress bar
Progress = Callable[[Iterable[Any], str, Optional[int]], Iterable[Any]]


def plainly(iterable: Iterable[Any], _: str, __: Optional[int]) -> Iterable[Any]:
    """No progress bar."""
    return iterable


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
    progress: Progress = plainly,
    total: Optional[int] = None,
) -> None:
    """Writes a corpus into an empty folder, in memory that hardly grows with it.

    Args:
        utterances: each with the part in which it was read; taken once.
        on_utterances: told of how many are done, now and then.
        progress: put around the reading, and then around the hashing of what was read.
        total: how many there are, where that is known.

    Raises:
        UserError: an id occurs twice, or some utterances name a user and others do not.
        OSError: the disk is full.

    Edge cases: an utterance costs about 20 bytes of memory while the split is drawn, and a distinct
    token or user about 200 until all is written.
    """
    with Writer(folder) as writer:
        read = progress(utterances, "reading the corpus", total)
        for count, (part, utterance) in enumerate(read, start=1):
            writer.add(part, utterance)
            if count % _FLUSH == 0:
                writer.flush()
                on_utterances(count)
    sizes, names = writer.sizes, writer.write_names()
    del writer  # with its tables of distinct strings
    columns = columns_in(folder, names)
    if len(columns) > _MOST:
        raise UserError(f"data: more than {_MOST:,} utterances cannot be kept: EDP_MX_CACHE=off")
    refuse_repeated_ids(folder)
    rows, split = arrange(sizes, _keys(folder, columns), columns.intents)
    for name in HASHES:
        (folder / name).unlink()
    for name, places in (("rows", rows), *((part, getattr(split, part)) for part in PARTS)):
        write(folder / name, places.astype(np.int32, copy=False))
    is_whole = _is_whole(rows, columns)
    del rows, split
    write(folder / NAMES, json.dumps(names).encode("ascii"))
    stored = _open(folder, columns, is_whole, {})
    prints = _fingerprints(stored.utterances, stored.split, on_utterances, progress)
    files = {path.name: measure(path) for path in sorted(folder.iterdir())}
    meta = {"fingerprints": prints, "is_whole": is_whole, "files": files}
    write(folder / META, json.dumps(meta, indent=2).encode("ascii"))


def _keys(folder: Path, columns: Columns) -> np.ndarray:
    """What `strata.keys_of` finds: users or, where none is named, texts (here their hashes)."""
    rows = np.arange(len(columns), dtype=np.int32)
    whole = StoredUtterances(columns, texts_in(folder, "ids", "id_offsets"), rows)
    return users_of(whole) if names_users(whole) else mapped(folder, "text_hashes")


def open_store(folder: Path) -> Stored:
    """Maps a stored corpus; every byte of it is checked before.

    Raises:
        Torn: a file is missing or is not what was written.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
        files, prints, is_whole = dict(meta["files"]), dict(meta["fingerprints"]), meta["is_whole"]
        if set(files) != {*KEPT, NAMES} or set(prints) != {*PARTS, "corpus"}:
            raise Torn(f"{META} lists other files")
        for name, measured in files.items():
            if measure(folder / name) != measured:
                raise Torn(f"{name} has changed")
        names = json.loads((folder / NAMES).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Torn(f"{error}") from error
    return _open(folder, columns_in(folder, names), is_whole is True, prints)


def _open(folder: Path, columns: Columns, is_whole: bool, prints: Mapping[str, str]) -> Stored:
    """What lies in a folder."""
    rows, ids = mapped(folder, "rows"), texts_in(folder, "ids", "id_offsets")
    split = Split(*(mapped(folder, part) for part in PARTS))
    return Stored(StoredUtterances(columns, ids, rows, is_whole=is_whole), split, prints)


def _is_whole(rows: np.ndarray, columns: Columns) -> bool:
    """Whether the utterances are all of the corpus, in its order."""
    return len(rows) == len(columns) and bool((np.diff(rows, prepend=-1) == 1).all())


def _fingerprints(
    utterances: StoredUtterances,
    split: Split,
    on_utterances: Callable[[int], None],
    progress: Progress,
) -> Dict[str, str]:
    """What `fingerprint` finds of each part, and of all of them one after the other."""
    whole, found, count = Fingerprint(), {}, 0
    for part in PARTS:
        alone = Fingerprint()
        some = utterances.at(getattr(split, part))
        for utterance in progress(some, f"hashing the {part} part", len(some)):
            text = hashed_text(utterance)
            alone.add_text(text)
            whole.add_text(text)
            count += 1
            if count % _FLUSH == 0:
                on_utterances(count)
        found[part] = alone.digits()
    return {**found, "corpus": whole.digits()}
