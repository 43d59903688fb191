"""Utterances that lie in files as numbers, and become text one by one, when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Sequence, Union, overload

import numpy as np

from edp_mx.data.columns import Columns, chunks, gathered
from edp_mx.data.utterance import Utterance

_AT_ONCE = 4096  # utterances that are made together when all are wanted


@dataclass(frozen=True, eq=False)
class StoredUtterances(Sequence[Utterance]):
    """Some utterances of a stored corpus, in any order; to be read like a list of them.

    Attributes:
        columns: the whole corpus.
        rows: which of its utterances these are.
        is_whole: whether these are all of them, in order, so that a place is a row.
        fingerprint: see `fingerprint.fingerprint`; empty where it is not known.

    Shapes: rows (U,), whole numbers; they may be mapped from a file.
    """

    columns: Columns
    rows: np.ndarray
    fingerprint: str = ""
    is_whole: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Utterance: ...

    @overload
    def __getitem__(self, index: slice) -> StoredUtterances: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Utterance, StoredUtterances]:
        if isinstance(index, slice):
            return replace(self, rows=self.rows[index], fingerprint="", is_whole=False)
        return self._make(self.rows[[index]])[0]

    def __iter__(self) -> Iterator[Utterance]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self._make(self.rows[first : first + _AT_ONCE])
            self.columns.release_pages()

    def at(self, indices: np.ndarray, *, fingerprint: str = "") -> StoredUtterances:
        """Those at some places, (n,), each from 0; of the whole corpus a view of the places."""
        rows = indices if self.is_whole else self.rows[indices]
        return replace(self, rows=rows, fingerprint=fingerprint, is_whole=False)

    def ids_at(self, indices: np.ndarray) -> Iterator[str]:
        """The ids of those at some places, (n,), one after the other."""
        for chunk in chunks(len(indices)):
            yield from map(self.columns.ids.__getitem__, self.rows[indices[chunk]].tolist())
            self.columns.release_pages()

    def token_counts(self) -> Dict[str, int]:
        """How often each token occurs, in the order of first appearance."""
        columns = self.columns
        return columns.occurring(columns.tokens, columns.token_names, self.rows)

    def tags(self) -> List[str]:
        """The tags that occur."""
        columns = self.columns
        return list(columns.occurring(columns.tags, columns.tag_names, self.rows))

    def intents(self) -> List[str]:
        """The intents that occur."""
        names, numbers = self.columns.intent_names, self.columns.intents
        occurs = np.zeros(len(names), bool)
        for chunk in chunks(len(self)):
            occurs[numbers[self.rows[chunk]]] = True
        return [names[number] for number in np.flatnonzero(occurs).tolist()]

    def _make(self, rows: np.ndarray) -> List[Utterance]:
        """The utterances of some rows of the corpus."""
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
    """Those at some places: of stored utterances a view, of others a list."""
    if isinstance(utterances, StoredUtterances):
        return utterances.at(indices, fingerprint=fingerprint)
    return [utterances[i] for i in indices]


def ids_at(utterances: Sequence[Utterance], indices: np.ndarray) -> Iterator[str]:
    """The ids of those at some places, one after the other."""
    if isinstance(utterances, StoredUtterances):
        return utterances.ids_at(indices)
    return (utterances[i].id for i in indices)
