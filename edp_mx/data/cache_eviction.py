"""What nobody has used for long leaves the cache of corpora."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Iterator, List

logger = logging.getLogger(__name__)

MOST_DAYS = 90  # without a start that uses it
MOST_BYTES = 20 << 30  # of all entries together


def note_use(entry: Path) -> None:
    """A start uses an entry: its folder's time says when it was last used."""
    with contextlib.suppress(OSError):
        os.utime(entry)


def evict(folder: Path, kept: str) -> List[str]:
    """Removes entries that no start has used for `MOST_DAYS`, and beyond `MOST_BYTES` the oldest.

    What a killed process left behind goes too.

    Args:
        kept: the name of an entry that stays.

    Returns:
        The names of what was removed.

    Guarantee: nothing goes that a process is writing, which holds its lock. Who reads an entry
    that goes has its files mapped, and keeps them; who is just opening it finds it torn, and reads
    the corpus anew.
    """
    removed: List[str] = []
    entries = [path for path in folder.iterdir() if path.is_dir()]
    ages = {path: time.time() - path.stat().st_mtime for path in entries}
    total = 0
    for path in sorted(entries, key=ages.__getitem__):  # the latest first
        key = path.name.split(".")[1] if path.name.startswith(".") else path.name
        total += sum(file.stat().st_size for file in path.iterdir())
        is_left = path.name.startswith(".")
        if key == kept or not (is_left or total > MOST_BYTES or ages[path] > MOST_DAYS * 86_400):
            continue
        with _unless_locked(folder / f"{key}.lock") as is_free:
            if is_free:
                aside = Path(tempfile.mkdtemp(dir=folder, prefix=f".{key}."))
                os.rename(path, aside)  # at once, so that no entry is there by half
                shutil.rmtree(aside, ignore_errors=True)
                removed.append(path.name)
    for name in removed:
        logger.info("removed %s: a corpus that was long not used", folder / name)
    return removed


@contextlib.contextmanager
def _unless_locked(path: Path) -> Iterator[bool]:
    """Holds a lock where nobody else does. The file stays: another may be waiting for it."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
