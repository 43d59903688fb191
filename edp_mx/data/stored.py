"""Utterances that lie in a file as numbers, and become text when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.columns import Columns, chunks, gathered
from edp_mx.data.utterance import Utterance


@dataclass(frozen=True, eq=False)
class StoredUtterances(Sequence[Utterance]):
    """Some utterances of a stored corpus, in any order, as a sequence of `Utterance`.

    Attributes:
        rows: (U,), which of the corpus' utterances these are; may be mapped from a file.
        is_whole: whether these are all of them, in order, so that a place is a row.
        fingerprint: see `fingerprint.fingerprint`; empty where it is not known.
    """

    columns: Columns
    rows: np.ndarray
    fingerprint: str = ""
    is_whole: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return replace(self, rows=self.rows[index], fingerprint="", is_whole=False)
        return self._make(self.rows[[index]])[0]

    def __iter__(self) -> Iterator[Utterance]:
        for chunk in chunks(len(self)):
            yield from self._make(self.rows[chunk])
            self.columns.release_pages()

    def at(self, indices: np.ndarray, *, fingerprint: str = "") -> StoredUtterances:
        """Select utterances by their places, (n,), each from 0, without a copy of their text."""
        rows = indices if self.is_whole else self.rows[indices]
        return replace(self, rows=rows, fingerprint=fingerprint, is_whole=False)

    def _make(self, rows: np.ndarray) -> List[Utterance]:
        columns = self.columns
        starts, lengths = columns.spans(rows)
        numbers, begins = gathered(columns.tokens, starts, lengths)
        tags, _ = gathered(columns.tags, starts, lengths)
        distinct, words = np.unique(numbers, return_inverse=True)
        names = [columns.token_names[number] for number in distinct.tolist()]  # each once
        spoken = [names[word] for word in words.tolist()]
        spans = [columns.tag_names[tag] for tag in tags.tolist()]
        ends, intents = begins + lengths, columns.intents[rows]
        users = columns.users[rows].tolist()
        user_names = {user: columns.user_names[user] for user in set(users)}  # each once
        return [
            Utterance(
                tuple(spoken[start:end]),
                tuple(spans[start:end]),
                columns.intent_names[intent],
                columns.ids[row],
                user_names[user],
            )
            for row, start, end, intent, user in zip(
                rows.tolist(), begins.tolist(), ends.tolist(), intents.tolist(), users
            )
        ]


def select(
    utterances: Sequence[Utterance], indices: np.ndarray, *, fingerprint: str = ""
) -> Sequence[Utterance]:
    """Select utterances by their places: stored ones as a view, others as a list."""
    if isinstance(utterances, StoredUtterances):
        return utterances.at(indices, fingerprint=fingerprint)
    return [utterances[i] for i in indices]


def numbered(utterances: Sequence[Utterance]) -> Tuple[Columns, np.ndarray]:
    """Return utterances as numbers: the columns of their corpus, and their rows, (U,)."""
    if isinstance(utterances, StoredUtterances):
        return utterances.columns, utterances.rows
    return Columns.of(utterances), np.arange(len(utterances))


def ids_at(utterances: Sequence[Utterance], indices: np.ndarray) -> Iterator[str]:
    if not isinstance(utterances, StoredUtterances):
        yield from (utterances[i].id for i in indices)
        return
    columns = utterances.columns
    for chunk in chunks(len(indices)):
        yield from map(columns.ids.__getitem__, utterances.rows[indices[chunk]].tolist())
        columns.release_pages()
