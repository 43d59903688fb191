"""Where large corpora are kept as numbers, in a folder of the user's alone."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Tuple

import numpy as np

from edp_mx.data.arrow_file import Stored, open_store
from edp_mx.errors import UserError
from edp_mx.runtime.disk_cache import MOST_DAYS, is_foreign
from edp_mx.runtime.files import sha256_of, user_cache
from edp_mx.runtime.progress import Heartbeat

logger = logging.getLogger(__name__)

MOST_BYTES = 20 << 30  # of all that is kept; beyond these the oldest go
_POLL = 0.2  # seconds between two looks at whether another process is done


def cache_folder() -> Optional[Path]:
    """Return `$EDP_MX_CACHE/corpora`, or the folder in the user's cache; None where it is "off"."""
    folder = user_cache()
    return None if folder is None else folder / "corpora"


def cache_key(settings: Any, files: Iterable[Tuple[str, Path]]) -> str:
    """Return a name for the result of settings (plain values) on some files, each with its name.

    Any byte that changes in a file, or in the code that reads, gives another name; times do not.
    """
    package = Path(__file__).parents[1]
    rooms = [*(package / "data").rglob("*"), *(package / "metrics").rglob("*")]  # spans, values
    rooms.append(package / "dp" / "accounting" / "units.py")  # whom a name stands for
    sources = [
        (path.relative_to(package).as_posix(), path)
        for path in sorted(rooms)
        if path.suffix in (".py", ".yaml")
    ]
    digest = hashlib.sha256(json.dumps([settings, np.__version__]).encode())
    for name, path in (*sources, *files):
        digest.update(repr(name).encode())
        with contextlib.suppress(OSError):  # the reader will complain
            digest.update(sha256_of(path).encode())
    return digest.hexdigest()[:32]


def open_cached(folder: Path, key: str) -> Optional[Stored]:
    """Open the file of a name; None if it is not there, or is torn (a warning says so)."""
    for path in folder.glob(f"{key}-*.arrow"):
        _refuse_foreign(folder)
        try:
            if path.name == _name(key, path):
                os.utime(path)  # its time is that of its last use
                return open_store(path)
        except OSError as error:  # another process removes it
            logger.info("%s cannot be read (%s)", path, error)
        else:
            logger.warning("%s is torn: the corpus is read anew", path)
    return None


def keep(
    folder: Path,
    key: str,
    write: Callable[[Path], None],
    *,
    unchanged: Callable[[], bool],
    heartbeat: Heartbeat,
) -> Optional[Stored]:
    """Keep what `write` writes under a name, unless another process does; then wait for that.

    None if it cannot be kept (the log says so). `unchanged` tells, after the reading, whether the
    files are still those of `key`. The file of a name is whole or not there.
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
                folder,
            )
            with _aside(folder, key) as aside:
                write(aside)
                if not unchanged():
                    raise UserError("data: the corpus changed while it was read; start again")
                with open(aside, "rb") as file:
                    os.fsync(file.fileno())
                kept = folder / _name(key, aside)
                os.replace(aside, kept)
            _evict(folder, kept)
            return open_store(kept)
    except OSError as error:
        logger.warning("the corpus cannot be kept in %s (%s): it is held in memory", folder, error)
        return None


def _name(key: str, path: Path) -> str:
    """Name a kept file after its content, so that a torn one is recognised."""
    return f"{key}-{sha256_of(path)[:32]}.arrow"


@contextlib.contextmanager
def _aside(folder: Path, key: str) -> Iterator[Path]:
    """Make an empty file to write to, after removing torn files and those of killed processes."""
    for left in (*folder.glob(f".{key}.*"), *folder.glob(f"{key}-*")):
        left.unlink()
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{key}.")  # mode 0600
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _evict(folder: Path, kept: Path) -> None:
    """Remove what was unused for `MOST_DAYS`, and beyond `MOST_BYTES` the oldest.

    What another process writes aside only goes when it is old.
    """
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process was faster
            if path.suffix != ".lock":
                found.append((path.stat(), path))
    total = 0
    for status, path in sorted(found, key=lambda one: -one[0].st_mtime):
        total += status.st_size
        is_old = time.time() - status.st_mtime > MOST_DAYS * 86_400
        is_surplus = total > MOST_BYTES and not path.name.startswith(".")
        if path != kept and (is_surplus or is_old):
            logger.info("removing %s: a corpus that was long not used", path)
            with contextlib.suppress(OSError):  # another process was faster
                path.unlink()


@contextlib.contextmanager
def _lock(path: Path, heartbeat: Heartbeat) -> Iterator[None]:
    """Hold a lock; the system takes it from a process that is killed."""
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
    if is_foreign(folder):
        raise UserError(
            f"{folder} is open to others, but holds corpora, which are private: `chmod 700` it, or "
            "set EDP_MX_CACHE to a folder of your own (or to off)"
        )
