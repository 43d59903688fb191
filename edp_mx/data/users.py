"""The users of a corpus by number."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from edp_mx.data.columnar_corpus import StoredUtterances, ids_at, numbered
from edp_mx.data.columns import Texts, chunks
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

HOW_TO_NAME = 'the key "user" in JSON lines, or a file `user` beside seq.in, seq.out and label'


def names_users(utterances: Sequence[Utterance]) -> bool:
    if not isinstance(utterances, StoredUtterances):
        return any(utterance.user for utterance in utterances)
    users, rows = utterances.columns.users, utterances.rows
    nobody = _number_of_nobody(utterances.columns.user_names)
    return any((users[rows[chunk]] != nobody).any() for chunk in chunks(len(rows)))


def users_of(utterances: Sequence[Utterance]) -> np.ndarray:
    """Return the user of each utterance, (U,) int32, numbered in the order of first appearance.

    Raises:
        UserError: an utterance names no user; the sentence has the id of the first such utterance
            and says how users are named.
    """
    columns, rows = numbered(utterances)
    numbers = columns.users[rows]
    nameless = np.flatnonzero(numbers == _number_of_nobody(columns.user_names))
    if len(nameless):
        (id,) = ids_at(utterances, nameless[:1])
        which = "though others do" if len(nameless) < len(numbers) else "nor does any other"
        raise UserError(
            f"data: the utterance {id!r} names no user, {which}; users are named for all "
            f"utterances or for none: {HOW_TO_NAME}"
        )
    return _by_first_appearance(numbers, len(columns.user_names))


def _number_of_nobody(names: Sequence[str]) -> int:
    """Return the number of the empty name, or −1."""
    if isinstance(names, Texts):
        empty = np.flatnonzero(names.offsets[1:] == names.offsets[:-1]).tolist()
    else:
        empty = [number for number, name in enumerate(names) if not name]
    return empty[0] if empty else -1


def _by_first_appearance(numbers: np.ndarray, count: int) -> np.ndarray:
    """Renumber numbers below `count`, (U,), in the order in which they first appear."""
    firsts = np.full(count, len(numbers), np.int32)
    np.minimum.at(firsts, numbers, np.arange(len(numbers), dtype=np.int32))
    places = np.empty(count, np.int32)
    places[np.argsort(firsts, kind="stable")] = np.arange(count, dtype=np.int32)
    return places[numbers]
