"""A cache on disk, in a folder of the user's: results by the question that they answer."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional, Type, TypeVar

from edp_mx.errors import UserError
from edp_mx.runtime.files import user_cache, write_json
from edp_mx.runtime.json_text import read_json

T = TypeVar("T")
MOST_DAYS = 90  # results that nothing has used for so long are removed


def remembered(folder: str, what: Any, kind: Type[T], find: Callable[[], T]) -> T:
    """Return the result of `find`, which is called only if it was not before.

    Args:
        folder: in the user's cache.
        what: plain values that decide the answer, all of them.
        kind: of the answer; a file with another is found anew.

    Edge cases: nothing is kept where EDP_MX_CACHE is off, or in a folder that others may open.
    """
    path = _place(folder, what)
    if path is None:
        return find()
    with suppress(OSError, UserError):
        os.utime(path)  # its time is that of its last use
        kept = read_json(path)
        if isinstance(kept, kind):
            return kept
    found = find()
    with suppress(OSError, UserError):
        _evict(path.parent)
        write_json(path, found)
    return found


def is_foreign(folder: Path) -> bool:
    """Return whether others may write to a folder or read it."""
    status = folder.stat()
    return status.st_uid != os.geteuid() or bool(stat.S_IMODE(status.st_mode) & 0o077)


def _place(folder: str, what: Any) -> Optional[Path]:
    """The file of an answer, in a folder that is there; None where nothing can be kept."""
    cache = user_cache()
    if cache is None:
        return None
    name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
    with suppress(OSError):
        (cache / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        return None if is_foreign(cache / folder) else cache / folder / f"{name}.json"
    return None


def _evict(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):  # another process was faster, or it is no file
            if time.time() - path.stat().st_mtime > MOST_DAYS * 86_400:
                path.unlink()
