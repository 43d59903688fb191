"""Checkpoints on disk: each with a checksum of itself, and the one before the last kept."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from pathlib import Path
from typing import BinaryIO, List, Mapping, Optional, Tuple

import numpy as np

from edp_mx.dp.accounting.ledger import LedgerMark
from edp_mx.errors import UserError
from edp_mx.runtime.files import whole_file
from edp_mx.runtime.npz import read_arrays, write_npz

logger = logging.getLogger(__name__)

FACTS = "facts"  # the group of a run's numbers among its arrays
_LEDGER = (f"{FACTS}/ledger_size", f"{FACTS}/ledger_digest")
_PLACE = (f"{FACTS}/epochs", f"{FACTS}/steps")
_MARK = b"sha256 "
_SEAL = len(_MARK) + 64  # bytes: the comment at the end of the archive


def write_checkpoint(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace a checkpoint, whole or not at all, and keep the one before it.

    The file is a `.npz`; the comment of the zip archive is the SHA-256 of all bytes before it. The
    one before `checkpoint.npz` is `checkpoint-1.npz`, to be used where the last one is damaged.
    """
    with whole_file(path) as file:
        write_npz(file, arrays)
        file.seek(-2, os.SEEK_END)
        file.write(_SEAL.to_bytes(2, "little"))  # the length of the comment
        size = file.tell()
        file.write(_MARK + _digest(file, size).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
        _keep_aside(path)  # only now: a full disk has not harmed it


def checkpoints(path: Path) -> List[Path]:
    """Return the checkpoints that there are, the newest first."""
    return [each for each in (path, _before(path)) if each.exists()]


def newest_whole(path: Path) -> Optional[Path]:
    """Return the newest checkpoint whose checksum is right; None if there is no checkpoint at all.

    Nothing is taken from a damaged one; a warning names it.

    Raises:
        UserError: all that there are are damaged.
    """
    damaged: List[str] = []
    for found in checkpoints(path):
        damage = damage_of(found)
        if not damage:
            if damaged:
                logger.warning("%s; %s, the one before, is used", "; ".join(damaged), found.name)
            return found
        damaged.append(f"{found} {damage}")
    if not damaged:
        return None
    raise UserError(
        f"{'; '.join(damaged)}: there is nothing whole to resume from; restore one of them, or "
        "train anew into a new directory"
    )


def newest_mark(path: Path) -> Optional[LedgerMark]:
    """Return the end of the ledger at the newest whole checkpoint; None if there is none."""
    newest = newest_whole(path)
    return None if newest is None else read_ledger_mark(newest)


def damage_of(path: Path) -> str:
    """Return the damage of a checkpoint, as the end of a sentence; "" for a whole one."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SEAL))
            seal = file.read()
            if not seal.startswith(_MARK):
                return "is torn: its checksum is missing"
            digest = _digest(file, size - _SEAL)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if digest.encode("ascii") != seal[len(_MARK) :]:
        return "was damaged or changed: its checksum is wrong"
    return ""


def _digest(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the first bytes of a file, which is left behind them."""
    digest = hashlib.sha256()
    file.seek(0)
    while size > 0:
        part = file.read(min(1 << 20, size))
        digest.update(part)
        size -= len(part) or size
    return digest.hexdigest()


def remove_checkpoints(path: Path) -> None:
    """Remove them all, the oldest first."""
    for found in reversed(checkpoints(path)):
        found.unlink(missing_ok=True)


def _before(path: Path) -> Path:
    return path.with_name(f"{path.stem}-1{path.suffix}")


def _keep_aside(path: Path) -> None:
    """Make the last one the one before; at every moment `path` itself stays what it is."""
    if not path.exists():
        return
    link = path.with_name(f".{path.name}.previous")
    link.unlink(missing_ok=True)
    try:
        os.link(path, link)
    except OSError:  # a file system without links
        shutil.copyfile(path, link)
    os.replace(link, _before(path))


def place_of(path: Path) -> Tuple[int, int]:
    """Return how many epochs a checkpoint has, and how many steps of the next, without its weights.

    (0, 0) where there is none.
    """
    newest = newest_whole(path)
    if newest is None:
        return 0, 0
    found = read_arrays(newest, "a checkpoint", only=_PLACE)
    if _PLACE[0] not in found:
        raise UserError(f"{newest} is not a checkpoint of a training run")
    return int(found[_PLACE[0]]), int(found.get(_PLACE[1], 0))


def read_ledger_mark(path: Path) -> LedgerMark:
    """Read how far the ledger had come when a checkpoint was written, without its weights.

    The checksum of the whole file is not looked at, which takes long for a large one.
    """
    found = read_arrays(path, "a checkpoint", only=_LEDGER)
    if len(found) < len(_LEDGER):
        raise UserError(f"{path} does not say how far its ledger had come: it is damaged")
    size, digest = (found[name] for name in _LEDGER)
    try:
        return LedgerMark(int(size), str(digest))
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {_LEDGER[0]} is damaged ({error})") from error
