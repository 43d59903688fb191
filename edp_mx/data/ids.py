"""Whether the ids of utterances are unique, found out with eight bytes for each."""

from __future__ import annotations

import hashlib
from array import array
from itertools import compress
from typing import Any, Iterable, Iterator

import numpy as np

from edp_mx.data.columns import encoded
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike


def digest_of(text: str) -> int:
    """Return the first 64 bits of a hash, as a signed number."""
    digest = hashlib.blake2b(encoded(text), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def with_unique_ids(
    utterances: Iterable[Utterance], ids: Iterable[str], place: PathLike
) -> Iterator[Utterance]:
    """Yield utterances; at their end, refuse ids that occurred twice.

    Args:
        ids: the same ids once more, which are read only if two of them have the same digest.
    """
    digests = array("q")
    for utterance in utterances:
        digests.append(digest_of(utterance.id))
        yield utterance
    refuse_repeated(digests, ids, place)


def refuse_repeated(digests: Any, ids: Iterable[str], place: PathLike) -> None:
    """Refuse ids that occur twice; they are looked at only where two digests are equal.

    Shapes: digests (ids,) int64.
    """
    digests = np.asarray(digests)
    ordered = np.sort(digests)
    suspect = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(suspect):
        return
    seen = set()
    for id in compress(ids, np.isin(digests, suspect)):
        if id in seen:
            raise UserError(f"{place}: the id {id!r} occurs twice; ids must be unique")
        seen.add(id)
