"""Utterances as numbers: each distinct string once, and flat arrays of which stands where."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance

_CHUNK = 1 << 16  # utterances that are looked at together


class Numbers(Dict[str, int]):
    """Strings, numbered in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


@dataclass(frozen=True, eq=False)
class Columns:
    """The tokens, tags and intents of utterances, without padding.

    Attributes:
        token_names, tag_names, intent_names: the distinct strings; a place is a number below.

    Shapes:
        U utterances, S tokens in all. offsets (U + 1,): utterance u has the tokens from
        `offsets[u]` up to `offsets[u + 1]`; tokens, tags (S,), intents (U,). They may be mapped
        from files.
    """

    offsets: np.ndarray
    tokens: np.ndarray
    tags: np.ndarray
    intents: np.ndarray
    token_names: Sequence[str]
    tag_names: Sequence[str]
    intent_names: Sequence[str]

    def __len__(self) -> int:
        return len(self.intents)

    @classmethod
    def of(cls, utterances: Sequence[Utterance]) -> Columns:
        """Numbers the strings in the order of their appearance."""
        tokens, tags, intents = Numbers(), Numbers(), Numbers()
        lengths = np.fromiter((len(u.tokens) for u in utterances), np.int64, count=len(utterances))
        total = int(lengths.sum())
        return cls(
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            tokens=np.fromiter((tokens[t] for u in utterances for t in u.tokens), np.int32, total),
            tags=np.fromiter((tags[t] for u in utterances for t in u.slots), np.int32, total),
            intents=np.fromiter((intents[u.intent] for u in utterances), np.int32, len(utterances)),
            token_names=list(tokens),
            tag_names=list(tags),
            intent_names=list(intents),
        )

    def spans(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Where the tokens of some utterances begin, and how many they are: (rows,) int64 each."""
        starts = self.offsets[rows]
        return starts, self.offsets[rows + 1] - starts


def chunks(
    numbers: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> Iterator[Tuple[slice, np.ndarray, np.ndarray]]:
    """What many utterances have in a column, some thousands of them at a time.

    Shapes: numbers (S,), the column; starts, lengths (rows,).

    Yields:
        Which of them; their numbers, (n,); where among these each one's begin, (rows,).
    """
    for first in range(0, len(starts), _CHUNK):
        rows = slice(first, first + _CHUNK)
        counts = lengths[rows].astype(np.int64)
        begins = np.cumsum(counts) - counts  # (rows,)
        shifts = np.repeat(starts[rows] - begins, counts)  # (n,)
        yield rows, numbers[shifts + np.arange(len(shifts))], begins
        let_go(numbers)


def occurring(
    numbers: np.ndarray, names: Sequence[str], starts: np.ndarray, lengths: np.ndarray
) -> Dict[str, int]:
    """How often each name stands in some utterances, in the order of first appearance.

    Shapes: numbers (S,), places in `names`; starts, lengths (rows,).
    """
    counts = np.zeros(len(names), dtype=np.int64)
    order: List[int] = []
    for _, found, _ in chunks(numbers, starts, lengths):
        new = found[counts[found] == 0]
        distinct, firsts = np.unique(new, return_index=True)
        order += distinct[np.argsort(firsts)].tolist()
        counts += np.bincount(found, minlength=len(names))
    return {names[number]: int(counts[number]) for number in order}


def let_go(array: np.ndarray) -> None:
    """Takes what was read of a mapped file out of this process' memory; it is read again at need.

    Edge cases: of an array in memory nothing changes.
    """
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
