"""Utterances that lie in files as numbers, and become text one by one, when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Sequence, Union, overload

import numpy as np

from edp_mx.data.columns import Columns, occurring
from edp_mx.data.utterance import Utterance

_AT_ONCE = 4096  # utterances that are made together when all are wanted


@dataclass(frozen=True, eq=False)
class StoredUtterances(Sequence[Utterance]):
    """Some utterances of a stored corpus, in any order; to be read like a list of them.

    Attributes:
        columns: the whole corpus.
        ids, id_offsets: the ids of the whole corpus, as UTF-8 one after the other.
        rows: which of its utterances these are.
        fingerprint: see `fingerprint.fingerprint`; empty where it is not known.

    Shapes: rows (U,) int64. ids (bytes,) uint8; utterance u has those from `id_offsets[u]` up to
    `id_offsets[u + 1]`.
    """

    columns: Columns
    ids: np.ndarray
    id_offsets: np.ndarray
    rows: np.ndarray
    fingerprint: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Utterance: ...

    @overload
    def __getitem__(self, index: slice) -> StoredUtterances: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Utterance, StoredUtterances]:
        if isinstance(index, slice):
            return replace(self, rows=self.rows[index], fingerprint="")
        return self._make(self.rows[[index]])[0]

    def __iter__(self) -> Iterator[Utterance]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self._make(self.rows[first : first + _AT_ONCE])

    def at(self, indices: np.ndarray, *, fingerprint: str = "") -> StoredUtterances:
        """Those at some places, (n,)."""
        return replace(self, rows=self.rows[indices], fingerprint=fingerprint)

    def token_counts(self) -> Dict[str, int]:
        """How often each token occurs, in the order of first appearance."""
        columns = self.columns
        return occurring(columns.tokens, columns.token_names, *columns.spans(self.rows))

    def tags(self) -> List[str]:
        """The tags that occur."""
        columns = self.columns
        return list(occurring(columns.tags, columns.tag_names, *columns.spans(self.rows)))

    def intents(self) -> List[str]:
        """The intents that occur."""
        occurs = np.unique(self.columns.intents[self.rows])
        return [self.columns.intent_names[number] for number in occurs.tolist()]

    def _make(self, rows: np.ndarray) -> List[Utterance]:
        """The utterances of some rows of the corpus."""
        columns = self.columns
        starts, lengths = columns.spans(rows)
        token_names, tag_names = columns.token_names, columns.tag_names
        made: List[Utterance] = []
        for row, start, length in zip(rows.tolist(), starts.tolist(), lengths.tolist()):
            end = start + length
            made.append(
                Utterance(
                    tuple([token_names[i] for i in columns.tokens[start:end].tolist()]),
                    tuple([tag_names[i] for i in columns.tags[start:end].tolist()]),
                    columns.intent_names[columns.intents[row]],
                    self._id(row),
                )
            )
        return made

    def _id(self, row: int) -> str:
        text = self.ids[self.id_offsets[row] : self.id_offsets[row + 1]].tobytes()
        return text.decode("utf-8", "surrogatepass")


def select(
    utterances: Sequence[Utterance], indices: np.ndarray, *, fingerprint: str = ""
) -> Sequence[Utterance]:
    """Those at some places: of stored utterances a view, of others a list."""
    if isinstance(utterances, StoredUtterances):
        return utterances.at(indices, fingerprint=fingerprint)
    return [utterances[i] for i in indices]
