"""Unpacks archives from elsewhere, only inside a folder and only what is wanted."""

from __future__ import annotations

import gzip
import io
import re
import stat
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Iterator, Pattern, Tuple

from edp_mx.errors import UserError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MAX_BYTES = 500_000_000  # of what is unpacked: a small archive can hold a very large file
CHUNK = 1 << 20
Member = Tuple[str, str, IO[bytes]]  # name, "" or what kind of special file it is, content


def is_archive(name: str) -> bool:
    """True if the name ends like an archive's."""
    return name.endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, wanted: Pattern[str]) -> int:
    """Writes the members whose whole name fits `wanted` to `folder` / its first group.

    Args:
        archive: a .zip, .tar, .tar.gz or .tgz file.
        folder: where the files go.
        wanted: matched against a member's name; group 1 is its path below `folder`.

    Returns:
        How many files were written.

    Raises:
        UserError: the archive is torn; a member, wanted or not, leads out of the folder or is a
            link or a device; two members are the same file; there is more than 500 MB to unpack.
    """
    written = 0
    left = MAX_BYTES
    with _named(archive), _opened(archive) as members:
        for name, special, content in members:
            _check(archive, name, special)
            match = wanted.fullmatch(name)
            if match is None:
                continue
            left = _copy(content, folder / match.group(1), left, archive)
            written += 1
    return written


def _check(archive: Path, name: str, special: str) -> None:
    """Refuses a member that is not a plain file below the folder."""
    if special:
        raise UserError(f"{archive.name}: member {name!r} is a {special}; nothing was unpacked")
    outside = name.startswith("/") or "\\" in name or re.match(r"[A-Za-z]:", name)
    if outside or ".." in PurePosixPath(name).parts or "\0" in name:
        raise UserError(f"{archive.name}: member {name!r} leads out of the folder; refused")


def _copy(content: IO[bytes], target: Path, left: int, archive: Path) -> int:
    """Writes one file that must not exist; returns what may still be unpacked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as file:
            for chunk in iter(lambda: content.read(CHUNK), b""):
                left -= len(chunk)
                if left < 0:
                    raise UserError(f"{archive.name} unpacks to more than {MAX_BYTES:,} bytes")
                file.write(chunk)
    except FileExistsError as error:
        raise UserError(f"{archive.name} holds {target.name} twice") from error
    return left


@contextmanager
def _named(archive: Path) -> Iterator[None]:
    """Turns what the standard library says of a torn archive into one sentence."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        RuntimeError,  # an encrypted member
        NotImplementedError,  # a compression that this Python lacks
    ) as error:
        raise UserError(f"{archive.name} is no whole archive ({error})") from error


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[Member]]:
    """The members of either kind of archive; folders are left out."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_members(zipped)
    else:
        with tarfile.open(archive, "r:" if archive.name.endswith(".tar") else "r:gz") as tarred:
            yield _tar_members(tarred)


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    """The upper half of the external attributes is a Unix mode, or 0."""
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        special = "link" if kind == stat.S_IFLNK else "special file"
        if info.is_dir() and kind in (0, stat.S_IFDIR):
            continue
        with archive.open(info) as content:
            yield info.filename, "" if kind in (0, stat.S_IFREG) else special, content


def _tar_members(archive: tarfile.TarFile) -> Iterator[Member]:
    """Hard links count as links; whatever is no file, folder or link counts as a device."""
    for info in archive:
        content = archive.extractfile(info) if info.isreg() else None
        if content is not None:
            yield info.name, "", content
        elif not info.isdir():
            yield info.name, "link" if info.issym() or info.islnk() else "device", io.BytesIO()
