"""A short hash of utterances, by which workers and later commands see that they mean the same."""

from __future__ import annotations

import hashlib
from typing import Iterable

from edp_mx.data.stored import StoredUtterances
from edp_mx.data.utterance import Utterance


class Fingerprint:
    """The hash of utterances that come one by one.

    Example:
        >>> print_ = Fingerprint()
        >>> print_.add(Utterance(("hi",), ("O",), "greet", "1"))
        >>> print_.digits() == fingerprint([Utterance(("hi",), ("O",), "greet", "1")])
        True
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._between = b""

    def add(self, utterance: Utterance) -> None:
        """Takes the next one in."""
        self.add_text(hashed_text(utterance))

    def add_text(self, text: bytes) -> None:
        """Takes the next one in, as `hashed_text` has it."""
        self._hash.update(self._between + text)
        self._between = b", "

    def digits(self) -> str:
        """Sixteen hexadecimal digits for all so far."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()[:16]


def hashed_text(utterance: Utterance) -> bytes:
    """What is hashed of one utterance: id, text, labels, and the user where one is named."""
    whole = (utterance.id, utterance.tokens, utterance.slots, utterance.intent)
    return repr((*whole, utterance.user) if utterance.user else whole).encode()


def fingerprint(utterances: Iterable[Utterance]) -> str:
    """The first digits of the SHA-256 of `[(id, tokens, slots, intent), …]` as Python writes it.

    An utterance that names its user has `(id, tokens, slots, intent, user)` there.
    Of a part of a stored corpus it was found when it was stored.
    """
    if isinstance(utterances, StoredUtterances) and utterances.fingerprint:
        return utterances.fingerprint
    whole = Fingerprint()
    for utterance in utterances:
        whole.add(utterance)
    return whole.digits()
