"""Fetching the public corpora: download aside, verify, then put in place."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from concurrent import futures
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional
from urllib.parse import urlsplit

import yaml

from edp_mx.data.archives import MAX_BYTES, SUFFIXES, unpack
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, sha256_of

RETRIES = 2  # pooch waits one second before the first, two before the second
TIMEOUT_SECONDS = 30.0  # without a byte
LONGEST_SECONDS = 3600.0  # for all files of a corpus together


@dataclass(frozen=True)
class PublicCorpus:
    """The address of a corpus and its checksums.

    `checksums`: SHA-256 by path, of files fetched one by one; `archive`, `inside`: the name of the
    one file, and the folder within it; `manifest`: SHA-256 of what sha256sum prints, sorted by
    path; `num_files`: all that is checked where no manifest is known; `wanted`: the corpus'
    paths, as a regular expression.
    """

    url: str
    licence: str
    wanted: str
    inside: str
    manifest: str = ""
    num_files: int = 0
    checksums: Mapping[str, str] = field(default_factory=dict)
    archive: str = ""


CORPORA: Mapping[str, PublicCorpus] = {
    name: PublicCorpus(**entry)
    for name, entry in yaml.safe_load(
        Path(__file__).with_name("public_corpora.yaml").read_text(encoding="utf-8")
    ).items()
}


def fetch(
    corpus: str, *, out: PathLike, source: Optional[str] = None, has_bar: bool = False
) -> Path:
    """Bring a public corpus into a folder of its own, checked against its checksums.

    Those of dstc8 are not known; what comes is then taken for the corpus if no file is missing or
    too many, and its address names one commit.

    Args:
        out: the corpus' folder, whole or not there; if it already holds the corpus, nothing is
            fetched.
        source: a mirror in place of the public address: a folder, an archive (.zip, .tar, .tar.gz,
            .tgz), or the http(s) address of an archive or of a folder that holds train/seq.in …
            (atis, snips), trainset.csv … (e2e), the JSON files (dart) or the archive (nlu_eval,
            dstc8).

    Raises:
        UserError: an unknown corpus, a source that is out of reach or not what it should be, or a
            folder with other content in it.
    """
    if corpus not in CORPORA:
        raise UserError(f"no public corpus {corpus!r}; there are {', '.join(CORPORA)}")
    public, target = CORPORA[corpus], Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if target.is_dir() and _is_whole(public, _corpus_files(target, public.wanted)):
            return target
        raise UserError(
            f"{target} holds something else; name a new folder with --out or empty this one"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as aside:
            folder = Path(aside, "corpus")
            folder.mkdir()
            _gather(public, source or public.url, folder, Path(aside), has_bar)
            _verify(corpus, public, folder, source or public.url)
            os.replace(folder, target)
    except OSError as error:
        raise UserError(f"cannot write {corpus} to {target} ({error})") from error
    return target


def manifest(files: Mapping[str, Path]) -> str:
    """Return one SHA-256 for a set of files, by their paths and contents."""
    lines = [f"{sha256_of(files[path])}  {path}\n" for path in sorted(files)]
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _is_whole(public: PublicCorpus, files: Mapping[str, Path]) -> bool:
    """Return whether these are the corpus' files, as far as it is known what these are."""
    if public.manifest:
        return manifest(files) == public.manifest
    return len(files) == public.num_files


def _download(
    base: str, checksums: Mapping[str, Optional[str]], folder: Path, has_bar: bool
) -> None:
    """Download files with their SHA-256, where it is known, and try again where one fails."""
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    puller = pooch.create(folder, f"{base}/", registry=dict(checksums), retry_if_failed=RETRIES)
    downloader = pooch.HTTPDownloader(
        progressbar=has_bar, timeout=TIMEOUT_SECONDS, hooks={"response": _bound}
    )
    ends = time.monotonic() + LONGEST_SECONDS
    for path in checksums:
        try:
            _until(ends, partial(puller.fetch, path, downloader=downloader))
        except (TimeoutError, futures.TimeoutError) as error:  # one since Python 3.11
            raise UserError(
                f"{base}/{path} is not here after {LONGEST_SECONDS:,.0f} s: the server is too "
                "slow; try later, or name a mirror with --from"
            ) from error
        except requests.HTTPError as error:
            reason = f"the server says {str(error).split(' for url')[0]}"
        except requests.ConnectionError:
            reason = "the server is out of reach"
        except requests.RequestException as error:
            reason = f"the connection broke ({type(error).__name__})"
        except ValueError as error:
            raise UserError(
                f"{path} from {base} has a wrong checksum: it is not the corpus' own"
            ) from error
        else:
            continue
        raise UserError(
            f"cannot fetch {base}/{path}: {reason}, {RETRIES + 1} times; try later, or name a "
            "mirror with --from"
        )


def _until(ends: float, job: Callable[[], Any]) -> None:
    """Do a job, for which a thread waits: a server that sends a byte now and then never ends it.

    Raises:
        futures.TimeoutError: it is not done at `ends`, of `time.monotonic`.
    """
    done: futures.Future[None] = futures.Future()

    def work() -> None:
        try:
            done.set_result(job())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    done.result(timeout=max(ends - time.monotonic(), 0.0))


def _bound(response: Any, *_: Any, **__: Any) -> None:
    """Refuse an answer that is, or announces to be, too large; called with its headers."""
    stated, pieces = response.headers.get("Content-Length", "0"), response.iter_content
    if not (stated.isascii() and stated.isdecimal()):
        raise UserError(f"{response.url} says that it is {stated!r} bytes large; name another")

    def refuse(size: int) -> None:
        if size > MAX_BYTES:
            raise UserError(
                f"{response.url} is larger than {MAX_BYTES:,} bytes; that is not a corpus"
            )

    def iter_content(*arguments: Any, **named: Any) -> Iterator[bytes]:
        size = 0
        for piece in pieces(*arguments, **named):
            size += len(piece)
            refuse(size)
            yield piece

    refuse(int(stated[:20]))
    response.iter_content = iter_content


def _gather(public: PublicCorpus, source: str, folder: Path, aside: Path, has_bar: bool) -> None:
    """Fill `folder` from a folder, an archive or an address."""
    base = source.rstrip("/")
    _refuse_no_address(source)
    if not re.match(r"https?://", source):
        _gather_local(public, Path(source), folder)
    elif source.endswith(SUFFIXES) or public.archive:
        base, name = source.rsplit("/", 1) if source.endswith(SUFFIXES) else (base, public.archive)
        _download(base, {name: None}, aside, has_bar)
        unpack(aside / name, folder, _members(public))
    else:
        _download(base, public.checksums, folder, has_bar)


def _refuse_no_address(source: str) -> None:
    """Refuse an address that names no server."""
    try:
        parts = urlsplit(source)
        if parts.scheme in ("http", "https") and (not parts.hostname or parts.port == 0):
            raise ValueError("no server")
    except ValueError as error:
        raise UserError(f"--from {source} is no address of a server ({error})") from error


def _gather_local(public: PublicCorpus, source: Path, folder: Path) -> None:
    if not source.exists():
        raise UserError(f"--from {source} does not exist; it is a folder, an archive or a http URL")
    if source.is_file() or (public.archive and (source / public.archive).is_file()):
        archive = source if source.is_file() else source / public.archive
        if not archive.name.endswith(SUFFIXES):
            raise UserError(f"--from {source} is not an archive (.zip, .tar, .tar.gz, .tgz)")
        unpack(archive, folder, _members(public))
        return
    inner = source / public.inside
    for path, file in _corpus_files(inner if inner.is_dir() else source, public.wanted).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / path)


def _members(public: PublicCorpus) -> re.Pattern[str]:
    """Match members: a root folder and the folder within it may come first."""
    return re.compile(rf"(?:[^/]+/)?(?:{re.escape(public.inside)})?({public.wanted})")


def _corpus_files(folder: Path, wanted: str) -> Dict[str, Path]:
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: p for name, p in paths.items() if p.is_file() and re.fullmatch(wanted, name)}


def _verify(corpus: str, public: PublicCorpus, folder: Path, source: str) -> None:
    """Compare the files with the checksums; the error names the first wrong one."""
    files = _corpus_files(folder, public.wanted)
    for path, checksum in public.checksums.items():
        if path not in files:
            raise UserError(f"{source} has no {path}, which {corpus} needs")
        if sha256_of(files[path]) != checksum:
            raise UserError(f"{path} from {source} has a wrong checksum: it is not {corpus}'s own")
    if not _is_whole(public, files):
        wrong = "has a wrong checksum" if public.manifest else f"should be {public.num_files} files"
        raise UserError(f"what came from {source} ({len(files)} files) {wrong}: it is not {corpus}")
