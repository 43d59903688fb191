"""Where large corpora are kept as numbers, so that a later start need not read their text.

What is kept is as private as the corpus: its folder is the user's alone. What was long not used
goes (see `cache_eviction`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Tuple

import numpy as np

from edp_mx.data.cache_eviction import evict, note_use
from edp_mx.data.store import (
    Arrange,
    Progress,
    Stored,
    Torn,
    open_store,
    plainly,
    write_store,
)
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import sha256_of

logger = logging.getLogger(__name__)

_OFF = "off"
_POLL = 0.2  # seconds between two looks at whether another process is done


def cache_folder() -> Optional[Path]:
    """`$EDP_MX_CACHE/corpora`, else `corpora` in the user's cache; None where it is "off"."""
    named = os.environ.get("EDP_MX_CACHE")
    if named == _OFF:
        return None
    if named:
        return Path(named) / "corpora"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "edp_mx" / "corpora"


def cache_key(settings: Any, files: Iterable[Tuple[str, Path]]) -> str:
    """A name for what is made of some files by some settings.

    Args:
        settings: plain values.
        files: each with the name under which it is read.

    Guarantee: any byte that changes in a file, or in the code that reads, makes and splits
    corpora, gives another name. Times and sizes of files have no say.
    """
    code = Path(__file__).parent
    sources = [(path.relative_to(code).as_posix(), path) for path in sorted(code.rglob("*.py"))]
    digest = hashlib.sha256(json.dumps([settings, np.__version__]).encode())
    for name, path in (*sources, *files):
        digest.update(repr(name).encode())
        with contextlib.suppress(OSError):  # the reader will complain
            digest.update(sha256_of(path).encode())
    return digest.hexdigest()[:32]


def open_cached(folder: Path, key: str) -> Optional[Stored]:
    """What is kept under a name, or None: it is not there, or torn, which is said in the log.

    Raises:
        UserError: others than the user may write in the folder, or read it.
    """
    entry = folder / key
    if not entry.is_dir():
        return None
    _refuse_foreign(folder)
    note_use(entry)
    try:
        return open_store(entry)
    except Torn as error:
        logger.warning("%s is torn (%s): the corpus is read anew", entry, error)
        return None


def keep(
    folder: Path,
    key: str,
    utterances: Iterable[Tuple[str, Utterance]],
    arrange: Arrange,
    *,
    unchanged: Callable[[], bool],
    heartbeat: Callable[[str], None],
    progress: Progress = plainly,
    total: Optional[int] = None,
) -> Optional[Stored]:
    """Stores a corpus under a name, unless another process does; then waits for that.

    Args:
        utterances, arrange: see `write_store`; not taken where another process was faster.
        unchanged: whether the files are still those of `key`; asked when they have been read.
        heartbeat: told what goes on.
        progress, total: see `write_store`.

    Returns:
        The stored corpus; None where it cannot be kept (which is said in the log).

    Raises:
        UserError: the corpus is broken or changes while it is read, or `folder` is not private.

    Guarantee: the folder of a name is whole or not there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _refuse_foreign(folder)
        with _lock(folder / f"{key}.lock", heartbeat):
            found = open_cached(folder, key)
            if found is not None:
                return found
            logger.info(
                "reading the corpus for the first time; it is kept in %s, which is as private as "
                "the corpus is (EDP_MX_CACHE=off: nowhere)",
                folder / key,
            )
            store = partial(
                write_store, utterances=utterances, arrange=arrange, progress=progress, total=total
            )
            _build(folder, key, store, unchanged, heartbeat)
            with contextlib.suppress(OSError):  # another process evicts too
                evict(folder, key)
            return open_store(folder / key)
    except (OSError, Torn) as error:
        logger.warning("the corpus cannot be kept in %s (%s): it is held in memory", folder, error)
        return None


def _build(
    folder: Path,
    key: str,
    store: Callable[..., None],
    unchanged: Callable[[], bool],
    heartbeat: Callable[[str], None],
) -> None:
    """Writes aside, then renames; what a process that was killed left behind is removed."""
    for left in folder.glob(f".{key}.*"):
        shutil.rmtree(left, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(dir=folder, prefix=f".{key}."))  # mode 0700
    try:
        store(
            aside,
            on_utterances=lambda count: heartbeat(f"reading the corpus, utterance {count:,}"),
        )
        if not unchanged():
            raise UserError("data: the corpus changed while it was read; start again")
        shutil.rmtree(folder / key, ignore_errors=True)  # torn
        os.rename(aside, folder / key)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _lock(path: Path, heartbeat: Callable[[str], None]) -> Iterator[None]:
    """Held by one process at a time; the system takes it from one that is killed."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                heartbeat("waiting for the process that reads the corpus")
                time.sleep(_POLL)
        yield


def _refuse_foreign(folder: Path) -> None:
    """What others may write is not trusted, and what they may read is no place for a corpus."""
    status = folder.stat()
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise UserError(
            f"{folder} is open to others, but holds corpora, which are private: `chmod 700` it, or "
            "set EDP_MX_CACHE to a folder of your own (or to off)"
        )
