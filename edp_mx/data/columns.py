"""Utterances as numbers: each distinct string once, and flat arrays of their places."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.runtime.ragged import gathered

_CHUNK = 1 << 12  # utterances that are looked at together


class Numbers(Dict[str, int]):
    """Strings, numbered in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """Strings one after the other as UTF-8, perhaps mapped from files, decoded when asked for.

    Shapes: content (bytes,) uint8; offsets (strings + 1,): a string lies from one to the next.
    """

    content: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        index = range(len(self))[index]
        return decoded(self.content[self.offsets[index] : self.offsets[index + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        for chunk in chunks(len(self)):
            ends = self.offsets[chunk.start : chunk.stop + 1].tolist()
            content = self.content[ends[0] : ends[-1]].tobytes()
            for start, end in zip(ends, ends[1:]):
                yield decoded(content[start - ends[0] : end - ends[0]])


def encoded(text: str) -> bytes:
    """Return UTF-8 of any string that Python has, also of halves of surrogate pairs."""
    return text.encode("utf-8", "surrogatepass")


def decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Columns:
    """The tokens, tags, intents, users and ids of utterances, without padding.

    Shapes: U utterances, S tokens in all. offsets (U + 1,): utterance u has the tokens from
        `offsets[u]` up to `offsets[u + 1]`; tokens, tags (S,), intents, users (U,): places in their
        names, where nobody is ""; ids (U,). `mapping` is the file that all arrays lie in, if they
        do.
    """

    offsets: np.ndarray
    tokens: np.ndarray
    tags: np.ndarray
    intents: np.ndarray
    users: np.ndarray
    ids: Sequence[str]
    token_names: Sequence[str]
    tag_names: Sequence[str]
    intent_names: Sequence[str]
    user_names: Sequence[str]
    mapping: Optional[mmap.mmap] = None

    def __len__(self) -> int:
        return len(self.intents)

    @classmethod
    def of(cls, utterances: Sequence[Utterance]) -> Columns:
        """Number the strings in the order of their appearance."""
        tokens, tags, intents, users = Numbers(), Numbers(), Numbers(), Numbers()
        lengths = np.fromiter((len(u.tokens) for u in utterances), np.int64, count=len(utterances))
        total = int(lengths.sum())
        return cls(
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            tokens=np.fromiter((tokens[t] for u in utterances for t in u.tokens), np.int32, total),
            tags=np.fromiter((tags[t] for u in utterances for t in u.slots), np.int32, total),
            intents=np.fromiter((intents[u.intent] for u in utterances), np.int32, len(utterances)),
            users=np.fromiter((users[u.user] for u in utterances), np.int32, len(utterances)),
            ids=[u.id for u in utterances],
            token_names=list(tokens),
            tag_names=list(tags),
            intent_names=list(intents),
            user_names=list(users),
        )

    def spans(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Return where the tokens of utterances begin and how many they are: (rows,) int64 each."""
        starts = self.offsets[rows]
        return starts, self.offsets[rows + 1] - starts

    def occurring(
        self, numbers: np.ndarray, names: Sequence[str], rows: np.ndarray
    ) -> Dict[str, int]:
        """Count how often each name stands in some utterances, in order of first appearance.

        Shapes: numbers (S,), `tokens` or `tags`, places in `names`; rows (rows,).
        """
        counts = np.zeros(len(names), dtype=np.int64)
        order: List[int] = []
        for chunk in chunks(len(rows)):
            found, _ = gathered(numbers, *self.spans(rows[chunk]))
            new = found[counts[found] == 0]
            distinct, firsts = np.unique(new, return_index=True)
            order += distinct[np.argsort(firsts)].tolist()
            counts += np.bincount(found, minlength=len(names))
            self.release_pages()
        return {names[number]: int(counts[number]) for number in order}

    def release_pages(self) -> None:
        """Give the pages of the file back to the system; they are read again when needed."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)


def chunks(length: int) -> Iterator[slice]:
    return (slice(first, first + _CHUNK) for first in range(0, length, _CHUNK))
