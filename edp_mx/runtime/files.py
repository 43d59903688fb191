"""Files that are either complete or not there: write to a temporary file, fsync, rename."""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import re
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator, Optional, Sequence, Union

from edp_mx.errors import UserError

_SUFFIXES = "npz|jsonl?|yaml|md|html|csv|png|log"
PathLike = Union[str, "os.PathLike[str]"]


def path_field(default: Any = None) -> Any:
    """Declare a setting that names files; `dump_config` writes them as absolute paths."""
    return dataclasses.field(default=default, metadata={"is_path": True})


def user_cache() -> Optional[Path]:
    """Return `$EDP_MX_CACHE` or a folder of the user's cache; None where it is "off"."""
    named = os.environ.get("EDP_MX_CACHE")
    if named:
        return None if named == "off" else Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "edp_mx")


@contextmanager
def whole_file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` only if the block succeeds.

    Raises:
        UserError: the disk is full, or the folder is not writable; `path` is then unchanged.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def refuse_unwritable(path: PathLike) -> None:
    """Refuse a file whose folder could not be written to, before the work for it is done."""
    folder = Path(path).parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {path}: {folder} is read-only, or another user's")


def remove_leftovers(folder: PathLike, names: Iterable[str] = ()) -> None:
    """Remove the temporary files that a killed process has left where `whole_file` wrote.

    Args:
        names: of the files that were to be replaced; by default, in a folder of a run's own, any
            that has one of the suffixes of a run's files.
    """
    wanted = "|".join(map(re.escape, names)) or rf"[^/]+\.(?:{_SUFFIXES})"
    leftover = re.compile(rf"\.(?:{wanted})\.[a-z0-9_]{{8}}")
    for path in Path(folder).iterdir() if Path(folder).is_dir() else ():
        if leftover.fullmatch(path.name) and path.is_file():
            with suppress(OSError):
                path.unlink()


def lock_folder(path: PathLike) -> Optional[int]:
    """Keep a folder that is trained into to this process, until the returned handle is closed.

    Returns:
        None on a file system without locks.

    Raises:
        UserError: another process has it.
    """
    handle = os.open(path, os.O_RDONLY)
    for _ in range(3):  # a process that only looks whether it is in use holds it for an instant
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            time.sleep(0.1)
        except OSError:
            os.close(handle)
            return None
    os.close(handle)
    raise UserError(
        f"{path} is in use: another process trains into it; wait until it has ended, or name "
        "another"
    )


def keep_private() -> None:
    """Let what this process writes from now on be read by its owner alone (files 0600).

    For commands that fill run directories: split, scores, checkpoints and logs hold private text,
    or say who is in the training part.
    """
    os.umask(0o077)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_bytes(path: PathLike, most: int = -1) -> bytes:
    """Return the first bytes of a file, by default all; refuse one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def companion(path: PathLike, suffix: str, begins: str) -> Path:
    """Return the file beside one that was named; refuse another's, which begins otherwise."""
    beside = Path(path).with_suffix(suffix)
    held = read_bytes(beside, 1000) if beside.exists() else b""
    if held and not held.startswith(begins.encode()):
        raise UserError(
            f"{beside}, which is written with {path}, is there already and holds something else: "
            "name another file (nothing was changed)"
        )
    return beside


def write_text(path: PathLike, text: str) -> None:
    """Write UTF-8 text, completely or not at all."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: PathLike, value: Any) -> None:
    """Write strict, indented JSON without NaN and Infinity, completely or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(path: PathLike, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV table, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_csv_beside(path: PathLike, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the numbers of a picture beside it, with the suffix .csv; see `companion`."""
    write_csv(companion(path, ".csv", ",".join(header)), header, rows)


def sha256_of(path: PathLike) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Flush the folder, so that a new file's name survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
