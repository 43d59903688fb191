"""A large corpus in one Arrow file: written in one pass over the text, mapped into memory."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple

import numpy as np

from edp_mx.data.column_files import NAMES, Spool
from edp_mx.data.columnar_corpus import StoredUtterances
from edp_mx.data.columns import Columns, Texts, chunks
from edp_mx.data.fingerprint import Fingerprint, hashed_text
from edp_mx.data.ids import refuse_repeated
from edp_mx.data.splits import PARTS, Split
from edp_mx.data.users import names_users, users_of
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

_BETWEEN = 10_000  # utterances from one heartbeat to the next
_MOST = 2**31 - 1  # utterances whose places are int32

# sizes of the parts as read; users (or texts) and intents as numbers → places of the utterances,
# their split
Arrange = Callable[[Dict[str, int], np.ndarray, np.ndarray], Tuple[np.ndarray, Split]]


@dataclass(frozen=True, eq=False)
class Stored:
    """A corpus in a file, with the fingerprints of its parts and of all ("corpus")."""

    utterances: StoredUtterances
    split: Split
    fingerprints: Mapping[str, str]


def write_store(
    path: Path,
    utterances: Iterable[Tuple[str, Utterance]],
    arrange: Arrange,
    *,
    heartbeat: Heartbeat = no_heartbeat,
    progress: Progress = no_progress,
    total: Optional[int] = None,
) -> None:
    """Write a corpus to a file, whose folder needs room for it twice, in memory that hardly grows.

    An utterance costs about 20 bytes of memory while the split is drawn, and a distinct token or
    user about 200 until all is written.

    Raises:
        UserError: an id occurs twice, or some utterances name a user and others do not.
    """
    with Spool(path.parent) as spool:
        read = progress(utterances, "reading the corpus", total)
        for part, utterance in _counted(read, heartbeat):
            spool.add(part, utterance)
        arrays = spool.arrays()
        columns = _columns(arrays)
        if len(columns) > _MOST:
            raise UserError(f"data: at most {_MOST:,} utterances are cached; set EDP_MX_CACHE=off")
        refuse_repeated(arrays.pop("id_hashes"), columns.ids, "data")
        text_hashes = arrays.pop("text_hashes")
        whole = StoredUtterances(columns, np.arange(len(columns), dtype=np.int32))
        keys = users_of(whole) if names_users(whole) else text_hashes  # as `strata.keys_of`
        rows, split = arrange(spool.sizes, keys, columns.intents)
        del whole, keys
        for name, places in (("rows", rows), *((part, getattr(split, part)) for part in PARTS)):
            arrays[name] = np.ascontiguousarray(places, dtype=np.int32)
        del rows, split
        stored = _stored(arrays, columns, {})
        _write_arrays(path, arrays, _fingerprints(stored, heartbeat, progress))


def open_store(path: Path) -> Stored:
    """Map a corpus that `write_store` wrote; nothing of it is read before it is looked at."""
    import pyarrow as pa

    with open(path, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    batch = pa.ipc.open_file(pa.py_buffer(mapping)).get_batch(0)
    arrays = {name: batch.column(name).values.to_numpy() for name in batch.schema.names}
    prints = {key.decode(): value.decode() for key, value in batch.schema.metadata.items()}
    return _stored(arrays, _columns(arrays, mapping), prints)


def _write_arrays(path: Path, arrays: Mapping[str, np.ndarray], notes: Dict[str, str]) -> None:
    """Write an Arrow file of one row, in which each column is the list of an array's numbers."""
    import pyarrow as pa

    lists = [
        pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), pa.array(array))
        for array in arrays.values()
    ]
    batch = pa.RecordBatch.from_arrays(lists, list(arrays)).replace_schema_metadata(notes)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _columns(arrays: Mapping[str, np.ndarray], mapping: Optional[mmap.mmap] = None) -> Columns:
    """Make columns without copies; of tags and intents there are few."""
    parts: Dict[str, Any] = {
        name: arrays[name] for name in ("offsets", "tokens", "tags", "intents", "users")
    }
    for name in ("ids", *NAMES):
        parts[name] = Texts(arrays[name], arrays[f"{name}_offsets"])
    for name in ("tag_names", "intent_names"):
        parts[name] = list(parts[name])
    return Columns(**parts, mapping=mapping)


def _stored(
    arrays: Mapping[str, np.ndarray], columns: Columns, prints: Mapping[str, str]
) -> Stored:
    rows = arrays["rows"]
    is_whole = len(rows) == len(columns) and all(
        (rows[chunk] - chunk.start == np.arange(len(rows[chunk]))).all()
        for chunk in chunks(len(rows))
    )
    split = Split(*(arrays[part] for part in PARTS))
    return Stored(StoredUtterances(columns, rows, is_whole=is_whole), split, prints)


def _fingerprints(stored: Stored, heartbeat: Heartbeat, progress: Progress) -> Dict[str, str]:
    whole, found = Fingerprint(), {}
    for part in PARTS:
        alone = Fingerprint()
        some = stored.utterances.at(getattr(stored.split, part))
        for utterance in _counted(progress(some, f"hashing the {part} part", len(some)), heartbeat):
            text = hashed_text(utterance)
            alone.add(text)
            whole.add(text)
        found[part] = alone.digits()
    return {**found, "corpus": whole.digits()}


def _counted(items: Iterable[Any], heartbeat: Heartbeat) -> Iterable[Any]:
    for count, item in enumerate(items, start=1):
        yield item
        if count % _BETWEEN == 0:
            heartbeat(f"reading the corpus, utterance {count:,}")
