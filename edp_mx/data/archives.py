"""Unpacking archives from elsewhere: only the wanted files, and only inside a folder."""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterator, Pattern, Tuple, Union

from edp_mx.errors import UserError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MAX_BYTES = 1_500_000_000  # of what is unpacked: a small archive can hold a very large file
MOST_IN_ALL, MOST_MEMBERS = 2 * MAX_BYTES, 100_000  # of what an archive holds, wanted or not
MOST_AT_ONCE = 2**20  # bytes of a header, which `tarfile` reads in one piece

Member = Tuple[str, int, str, Any]  # name, size, kind of special file or "", the library's own


def unpack(archive: Path, folder: Path, wanted: Pattern[str]) -> None:
    """Unpack the members whose whole name fits `wanted`; its group 1 is the path below `folder`.

    Guarantee: everything but the content is checked before the first file is written: no member,
        wanted or not, leads out of the folder or is a link or a device; wanted ones come once, and
        are 1.5 GB at most.
    """
    try:
        with _opened(archive) as opened:
            read: Any = opened.open if isinstance(opened, zipfile.ZipFile) else opened.extractfile
            targets = _targets(archive.name, _members(opened), folder, wanted)
            for target, member in targets.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                with read(member) as content, target.open("xb") as file:
                    shutil.copyfileobj(content, file)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        gzip.BadGzipFile,
        RuntimeError,  # an encrypted member, or a compression that this Python lacks
        ValueError,  # a negative size, a name that is no text
    ) as error:
        raise UserError(f"{archive.name} is not a whole archive ({error})") from error


class _Bounded:
    """A file from which `tarfile` reads no header beyond `MOST_AT_ONCE`, and no endless content."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self._file.read(size)

    def seek(self, position: int) -> int:
        if position > MOST_IN_ALL:
            raise tarfile.ReadError(f"it holds more than {MOST_IN_ALL:,} bytes")
        return self._file.seek(position)


@contextmanager
def _opened(archive: Path) -> Iterator[Union[zipfile.ZipFile, tarfile.TarFile]]:
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            yield opened
        return
    with archive.open("rb") if archive.name.endswith(".tar") else gzip.open(archive) as file:
        bounded: Any = _Bounded(file)
        yield tarfile.TarFile(fileobj=bounded)


def _targets(
    archive: str, members: Iterator[Member], folder: Path, wanted: Pattern[str]
) -> Dict[Path, Any]:
    """Check every member, then return the files to write with their members."""
    targets: Dict[Path, Any] = {}
    left = MAX_BYTES
    for number, (name, size, special, member) in enumerate(members, start=1):
        if number > MOST_MEMBERS:
            raise UserError(f"{archive} holds more than {MOST_MEMBERS:,} files")
        if special:
            raise UserError(f"{archive}: member {name!r} is a {special}; nothing was unpacked")
        is_absolute = name.startswith("/") or "\\" in name or re.match(r"[A-Za-z]:", name)
        if is_absolute or ".." in PurePosixPath(name).parts or "\0" in name:
            raise UserError(f"{archive}: member {name!r} leads out of the folder; refused")
        match = wanted.fullmatch(name)
        if match is None:
            continue
        target, left = folder / match.group(1), left - size
        if target in targets:
            raise UserError(f"{archive} holds {target.name} twice")
        if left < 0:
            raise UserError(f"{archive} unpacks to more than {MAX_BYTES:,} bytes")
        targets[target] = member
    return targets


def _members(opened: Union[zipfile.ZipFile, tarfile.TarFile]) -> Iterator[Member]:
    """Yield all members but folders; no archive gives more bytes than its stated sizes."""
    if isinstance(opened, zipfile.ZipFile):
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)  # a Unix mode, or 0
            special = "link" if kind == stat.S_IFLNK else "special file"
            if not (info.is_dir() and kind in (0, stat.S_IFDIR)):
                is_plain = kind in (0, stat.S_IFREG)
                yield info.filename, info.file_size, "" if is_plain else special, info
    else:
        for member in opened:
            special = "link" if member.issym() or member.islnk() else "device"
            if not member.isdir():
                yield member.name, member.size, "" if member.isreg() else special, member
