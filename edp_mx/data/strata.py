"""A corpus grouped by intent, then by user or text: the groups that a split draws from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.columns import Numbers, chunks
from edp_mx.data.users import names_users, users_of
from edp_mx.data.utterance import REPLY, Utterance


def keys_of(utterances: Sequence[Utterance]) -> Tuple[np.ndarray, np.ndarray]:
    """Return users (`split_text`, if no user is named) and intents as numbers, (U,) each."""
    texts, intents = Numbers(), Numbers()
    kinds = np.array([intents[u.intent] for u in utterances], np.int64)
    if names_users(utterances):
        return users_of(utterances), kinds
    return np.array([texts[split_text(u)] for u in utterances], np.int64), kinds


def split_text(utterance: Utterance) -> str:
    """Return what stays on one side of a split: a prompt with all its replies, or a text."""
    return folded_text(utterance).partition(f"\0{REPLY}\0")[0]


def folded_text(utterance: Utterance) -> str:
    """Return the text of an utterance; two with the same one count as repeats."""
    return "\0".join(utterance.tokens).lower()


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of places: runs (starts, sizes: (R,)) of the vector `order`, (U,), in int32."""

    order: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    def largest_first(self) -> Iterator[np.ndarray]:
        """Yield the places of each group, ascending; groups of one size in their order."""
        for group in np.argsort(-self.sizes, kind="stable").tolist():
            start = self.starts[group]
            yield self.order[start : start + self.sizes[group]]

    def chosen(self, is_chosen: np.ndarray) -> Groups:
        return Groups(self.order, self.starts[is_chosen], self.sizes[is_chosen])


def strata(keys: np.ndarray, intents: np.ndarray) -> Iterator[Tuple[np.ndarray, Groups]]:
    """Yield, for each intent, the places whose key occurs once, and the groups of repeated keys.

    The intent with most groups comes first. Places are ascending, groups in the order of their
    first places; a group has the intent of its first place.
    """
    is_alone, repeats = _groups(keys)
    firsts = repeats.order[repeats.starts]  # (R,), ascending
    of_group = intents[firsts]  # (R,)
    found: List[Tuple[int, int, Any]] = []
    for kind in np.unique(intents):
        alone, groups = np.flatnonzero(is_alone & (intents == kind)), of_group == kind
        begins = [*alone[:1].tolist(), *firsts[groups][:1].tolist()]
        if begins:
            found.append((-len(alone) - int(groups.sum()), min(begins), kind))
    for _, _, kind in sorted(found):  # ties: whose first group comes first
        alone = places_where(is_alone & (intents == kind))
        yield alone, repeats.chosen(of_group == kind)


def _groups(keys: np.ndarray) -> Tuple[np.ndarray, Groups]:
    """Return which places have a key of their own, (U,) bool, and the groups of the others."""
    order = np.argsort(keys, kind="stable").astype(np.int32)  # (U,), one group after another
    is_start = np.ones(len(keys), bool)  # (U,)
    for chunk in chunks(max(0, len(keys) - 1)):
        here = keys[order[chunk.start : chunk.stop + 1]]
        is_start[chunk.start + 1 : chunk.stop + 1] = here[1:] != here[:-1]
    starts = np.flatnonzero(is_start).astype(np.int32)  # (G,)
    sizes = np.diff(starts, append=np.int32(len(keys)))  # (G,)
    is_alone = np.zeros(len(keys), bool)  # (U,)
    is_alone[order[starts[sizes == 1]]] = True
    starts, sizes = starts[sizes > 1], sizes[sizes > 1]  # (R,)
    by_place = np.argsort(order[starts])  # (R,)
    return is_alone, Groups(order, starts[by_place], sizes[by_place])


def places_where(is_there: np.ndarray) -> np.ndarray:
    return np.flatnonzero(is_there).astype(np.int32)
