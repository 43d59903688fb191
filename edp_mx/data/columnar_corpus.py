"""Utterances as numbers, in a file or in memory: made text when asked for, and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Set, Tuple

import numpy as np

from edp_mx.data.columns import Columns, chunks
from edp_mx.data.utterance import Utterance
from edp_mx.runtime.ragged import gathered

_PER_LINE = 1000  # of the same token


@dataclass(frozen=True, eq=False)
class StoredUtterances(Sequence[Utterance]):
    """Some utterances of a stored corpus, in any order, as a sequence of `Utterance`.

    `rows`, (U,), which may be mapped from a file, are all of them in order if `is_whole`; the
    fingerprint is empty where it is not known.
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


def token_counts(utterances: Sequence[Utterance]) -> Dict[str, int]:
    """Count the occurrences of each token, in the order of first appearance."""
    columns, rows = numbered(utterances)
    return columns.occurring(columns.tokens, columns.token_names, rows)


def tags_of(utterances: Sequence[Utterance]) -> Set[str]:
    """Return the BIO tags that occur."""
    columns, rows = numbered(utterances)
    return set(columns.occurring(columns.tags, columns.tag_names, rows))


def intents_of(utterances: Sequence[Utterance]) -> Set[str]:
    columns, rows = numbered(utterances)
    return {columns.intent_names[i] for i in np.unique(columns.intents[rows])}


def lines_of(utterances: Sequence[Utterance]) -> Iterator[str]:
    """Yield lines of text with each token as often as it occurs; not in the spoken order."""
    yield from repeated(token_counts(utterances).items())


def repeated(counts: Iterable[Tuple[str, int]]) -> Iterator[str]:
    """Yield lines with each word as often as it was counted."""
    for word, count in counts:
        for first in range(0, count, _PER_LINE):
            yield " ".join([word] * min(_PER_LINE, count - first))
