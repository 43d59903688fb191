"""A short hash of utterances, by which workers and later commands compare their data."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import tempfile
from pathlib import Path
from typing import Dict, Iterable, Iterator, Mapping, Optional, Tuple

from edp_mx.data.columnar_corpus import StoredUtterances
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError


class Fingerprint:
    """The fingerprint of utterances whose `hashed_text` is added one by one."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._between = b""

    def add(self, text: bytes) -> None:
        self._hash.update(self._between + text)
        self._between = b", "

    def digits(self) -> str:
        """Return sixteen hexadecimal digits for all utterances so far."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()[:16]


def hashed_text(utterance: Utterance) -> bytes:
    whole = (utterance.id, utterance.tokens, utterance.slots, utterance.intent)
    return repr((*whole, utterance.user) if utterance.user else whole).encode()


def fingerprint(utterances: Iterable[Utterance]) -> str:
    """Return the first digits of the SHA-256 of `repr([(id, tokens, slots, intent), …])`.

    An utterance that names its user is hashed as `(id, tokens, slots, intent, user)`. A part of a
    stored corpus brings its fingerprint along.
    """
    if isinstance(utterances, StoredUtterances) and utterances.fingerprint:
        return utterances.fingerprint
    whole = Fingerprint()
    for utterance in utterances:
        whole.add(hashed_text(utterance))
    return whole.digits()


def keyed(fingerprint: str) -> Dict[str, str]:
    """Return a fingerprint that may be shown: without this machine's key it confirms no guess.

    A plain hash of the training part would confirm its last utterance to whoever knows all others.
    """
    name, (digest,) = keyed_all([fingerprint])
    return {"key": name, "digest": digest}


def keyed_all(
    texts: Iterable[str], *, salt: str = "", digits: int = 32
) -> Tuple[str, Iterator[str]]:
    """Return the name of this machine's key, and the keyed hash of each text, one by one.

    Equal texts have equal hashes only where the salt is equal too.
    """
    key = _key()
    name = hashlib.sha256(b"edp_mx fingerprint key" + key).hexdigest()[:16]
    return name, (
        hmac.digest(key, f"{salt}{text}".encode(), "sha256").hex()[:digits] for text in texts
    )


def is_same(recorded: Mapping[str, str], fingerprint: str) -> Optional[bool]:
    """Return whether a fingerprint is the recorded one, or None if another machine keyed that.

    `recorded` is the result of `keyed`.
    """
    now = keyed(fingerprint)
    return now["digest"] == recorded["digest"] if now["key"] == recorded["key"] else None


def _key() -> bytes:
    """Return this machine's key, `$EDP_MX_KEY` or a default file, created at the first call."""
    default = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "edp_mx"
    path = Path(os.environ.get("EDP_MX_KEY") or default / "fingerprint.key")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # readable by us alone
                file.write(os.urandom(32))
                file.flush()
                os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):  # another worker was quicker
                    os.link(file.name, path)
        key = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot use {path}, the key of corpus fingerprints: {error.strerror}; name another "
            "file by EDP_MX_KEY"
        ) from error
    if len(key) != 32:
        raise UserError(f"{path} is not a key of 32 bytes; remove it, and a new one is created")
    return key
