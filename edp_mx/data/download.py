"""Fetches the public corpora: download aside, verify, then put in place."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from edp_mx.data.archives import MAX_BYTES, is_archive, unpack
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, sha256_of

RETRIES = 2  # pooch waits one second before the first, two before the second
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class PublicCorpus:
    """Where a corpus lives and what it must be.

    `checksums`: SHA-256 by path, where the files are fetched one by one.
    `archive`: the file's name where it comes as one, with `inside`, the folder within it.
    `manifest`: SHA-256 of the lines "<sha256>  <path>\\n", sorted by path, as sha256sum prints.
    `wanted`: the paths that make up the corpus, as a regular expression.
    """

    url: str
    licence: str
    wanted: str
    manifest: str
    inside: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    archive: str = ""


SLOT_GATED = "https://raw.githubusercontent.com/MiuLab/SlotGated-SLU/master/data"
THREE_FILES = r"(?:train|valid|test)/(?:seq\.in|seq\.out|label)"
CORPORA: Mapping[str, PublicCorpus] = {
    "atis": PublicCorpus(
        url=f"{SLOT_GATED}/atis",
        licence="ATIS (Hemphill et al. 1990); the corpus belongs to the LDC",
        wanted=THREE_FILES,
        inside="data/atis/",
        manifest="ad516f5d09024b2290f587ae61bb5aba842d992bb6c5032ed59f0fde97a8c184",
        checksums={
            "test/label": "ce4bfe6590d9498e1078f30b4137d3e8b3e94277b444b26360c0bf2e9e282761",
            "test/seq.in": "4b2119fc59c37f9398c6605db435d4f467505009e6ee3e5af04fed09f39dc397",
            "test/seq.out": "a4690d6bceadc06876d1ff99bc401744aa981cb321e598ae12a3859d7be53254",
            "train/label": "d0a771547665eecbdf9f96ea015ef07d1f6ee9f063e861020dafabb3c2a04377",
            "train/seq.in": "3a670980841b21ab39088b2595efc17d487cdc45769c075a3e5f9458bba28c7f",
            "train/seq.out": "14c7131bd66562f797dbd7189bc7358f0cf354c6afb0785a9ab973c35b58f34c",
            "valid/label": "06957cfe6fdffac84f8280bc3a1f8ca85c85631b363817aa4543aac611f8addf",
            "valid/seq.in": "c7435b96e7948393608c34819628e863c5338f11ca68e8f896d2cc041d8e17f8",
            "valid/seq.out": "83ccff3e36f83a993f8e5b5b82adf3256076f234abda4d784051381d7ac76922",
        },
    ),
    "snips": PublicCorpus(
        url=f"{SLOT_GATED}/snips",
        licence="SNIPS (Coucke et al. 2018), CC0",
        wanted=THREE_FILES,
        inside="data/snips/",
        manifest="b76894a711ca313a608eaa9bb486c74f9a41f728887312cd75eb78e00fe74f3f",
        checksums={
            "test/label": "37a26da3ad079bb41c42c85a3a8f827eb47efec4c5917ce5d08f4b2736e4f830",
            "test/seq.in": "c1e341173fcea2951a8ca371956a6f81c76de87b9583c62eb87edd6158fa3a7c",
            "test/seq.out": "58c07c9097d5e1f78889765c2a535a160f6455b90b3142055c8051847afcca47",
            "train/label": "bfd7df6cf9dd76c5da5d8b61bc85f90386197bdd3d7510c1d324c051537b962f",
            "train/seq.in": "04ad1e3f2121d83c6478f9a4b17d2dbdc21d06d6127f73cb7af835ed733f9855",
            "train/seq.out": "fd5f2121d8055827e5d6b3d3bac30f3d7e94e82a5d437751960cbdd9e1b4f6d3",
            "valid/label": "9c1dd041216f647bcfca838aaf1a48eb5781e4404256d31ff07cd38a5436c52f",
            "valid/seq.in": "64e0f6d8ad8aab3a3828164d7d53731a0993d3ca1aed437ceaca6d3d568d410e",
            "valid/seq.out": "712e6d34feb8d52d208b820a5f8bae6e6ff990f08374507dfde22de389088319",
        },
    ),
    "nlu_eval": PublicCorpus(
        url="https://github.com/xliuhw/NLU-Evaluation-Data/archive/refs/heads",
        licence="NLU-Eval (Liu et al. 2019), CC BY 4.0",
        wanted=r"KFold_\d+/testset/csv/\w+\.csv",
        inside="CrossValidation/autoGeneFromRealAnno/autoGene_2018_03_22-13_01_25_169/"
        "CrossValidation/",
        manifest="d98a0abbea51dc97b568ccd699a8842d2ab8fbaa64178e46791d239c226ca3ae",
        archive="master.zip",
    ),
}


def fetch(
    corpus: str, *, out: PathLike, source: Optional[str] = None, has_bar: bool = False
) -> Path:
    """Bring a public corpus into a folder of its own, checked against its checksums.

    Args:
        corpus: "atis", "snips" or "nlu_eval".
        out: the corpus' folder; it appears whole or not at all.
        source: a mirror in place of the public address: a folder, an archive (.zip, .tar,
            .tar.gz, .tgz), or the http(s) address of an archive or of a folder that holds
            train/seq.in … (atis, snips) or master.zip (nlu_eval).
        has_bar: show a progress bar for each file.

    Returns:
        The folder. If it already holds the corpus, nothing is fetched.

    Raises:
        UserError: an unknown corpus, a source that is out of reach or not what it should be, or a
            folder with other content in it.
    """
    if corpus not in CORPORA:
        raise UserError(f"no public corpus {corpus!r}; there are {', '.join(CORPORA)}")
    public, target = CORPORA[corpus], Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        if target.is_dir() and manifest(_corpus_files(target, public.wanted)) == public.manifest:
            return target
        raise UserError(
            f"{target} holds something else; name a new folder with --out or empty this one"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    try:
        folder = aside / "corpus"
        folder.mkdir()
        _gather(public, source or public.url, folder, aside, has_bar)
        _verify(corpus, public, folder, source or public.url)
        os.replace(folder, target)
    except OSError as error:
        raise UserError(f"cannot bring {corpus} to {target}: {error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def manifest(files: Mapping[str, Path]) -> str:
    """Return one SHA-256 for a set of files, by their paths and contents."""
    lines = [f"{sha256_of(files[path])}  {path}\n" for path in sorted(files)]
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _download(
    base: str, checksums: Mapping[str, Optional[str]], folder: Path, has_bar: bool
) -> None:
    """Download files with their SHA-256, where it is known, and try again where one fails."""
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    puller = pooch.create(folder, f"{base}/", registry=dict(checksums), retry_if_failed=RETRIES)
    downloader = pooch.HTTPDownloader(
        progressbar=has_bar, timeout=TIMEOUT_SECONDS, hooks={"response": _refuse_too_large}
    )
    for path in checksums:
        try:
            puller.fetch(path, downloader=downloader)
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


def _refuse_too_large(response: Any, *_: Any, **__: Any) -> None:
    """Refuse a file whose announced size no corpus has."""
    if int(response.headers.get("Content-Length", 0)) > MAX_BYTES:
        raise UserError(f"{response.url} is larger than {MAX_BYTES:,} bytes; that is no corpus")


def _gather(public: PublicCorpus, source: str, folder: Path, aside: Path, has_bar: bool) -> None:
    """Fill `folder` from a folder, an archive or an address."""
    base = source.rstrip("/")
    if not re.match(r"https?://", source):
        _gather_local(public, Path(source), folder)
    elif is_archive(source) or public.archive:
        base, name = source.rsplit("/", 1) if is_archive(source) else (base, public.archive)
        _download(base, {name: None}, aside, has_bar)
        unpack(aside / name, folder, _members(public))
    else:
        _download(base, public.checksums, folder, has_bar)


def _gather_local(public: PublicCorpus, source: Path, folder: Path) -> None:
    """Copy from a mirror's folder, or unpack its archive."""
    if not source.exists():
        raise UserError(f"--from {source} does not exist; it is a folder, an archive or a http URL")
    if source.is_file() or (public.archive and (source / public.archive).is_file()):
        archive = source if source.is_file() else source / public.archive
        if not is_archive(archive.name):
            raise UserError(f"--from {source} is a file but no archive (.zip, .tar, .tar.gz, .tgz)")
        unpack(archive, folder, _members(public))
        return
    inner = source / public.inside
    for path, file in _corpus_files(inner if inner.is_dir() else source, public.wanted).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / path)


def _members(public: PublicCorpus) -> re.Pattern[str]:
    """An archive's member: perhaps a root folder, perhaps the folder within the repository."""
    return re.compile(rf"(?:[^/]+/)?(?:{re.escape(public.inside)})?({public.wanted})")


def _corpus_files(folder: Path, wanted: str) -> Dict[str, Path]:
    """The files below a folder that belong to a corpus, by their relative paths."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: p for name, p in paths.items() if p.is_file() and re.fullmatch(wanted, name)}


def _verify(corpus: str, public: PublicCorpus, folder: Path, source: str) -> None:
    """Compares what came with the checksums.

    Raises:
        UserError: it names the first file that is missing or differs, where files are known.
    """
    files = _corpus_files(folder, public.wanted)
    for path, checksum in public.checksums.items():
        if path not in files:
            raise UserError(f"{source} has no {path}, which {corpus} needs")
        if sha256_of(files[path]) != checksum:
            raise UserError(f"{path} from {source} has a wrong checksum: it is not {corpus}'s own")
    if manifest(files) != public.manifest:
        raise UserError(
            f"what came from {source} ({len(files)} files) has a wrong checksum: it is not {corpus}"
        )
