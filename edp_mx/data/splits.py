"""Which utterances train, which validate, and which are never seen in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

PARTS = ("train", "validation", "test")
PAPER_FRACTIONS = (0.45, 0.05, 0.50)


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into a corpus, each ascending; together every index once.

    Shapes: `train`, `validation`, `test` are int64 vectors.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def to_json(self, utterances: Sequence[Utterance]) -> Dict[str, List[str]]:
        """The split as utterance ids, for the run directory."""
        return {part: [utterances[i].id for i in getattr(self, part)] for part in PARTS}

    @classmethod
    def from_json(cls, value: Dict[str, Any], utterances: Sequence[Utterance]) -> Split:
        """Finds the ids of `to_json` in a corpus.

        Raises:
            UserError: a part is missing, or an id is unknown, repeated or left out: another corpus.
        """
        missing = [part for part in PARTS if not isinstance(value.get(part), list)]
        if missing:
            raise UserError(f'the split lacks the list "{missing[0]}"')
        index_of = {utterance.id: index for index, utterance in enumerate(utterances)}
        ids = [id for part in PARTS for id in value[part]]
        unknown = [id for id in ids if id not in index_of]
        if unknown:
            raise UserError(f"the split names the utterance {unknown[0]!r}, which is not here")
        if len(set(ids)) != len(ids) or len(ids) != len(utterances):
            raise UserError(
                f"the split names {len(ids)} utterances ({len(set(ids))} different ones) but the "
                f"corpus holds {len(utterances)}; it was made from another corpus"
            )
        return cls(*(_indices([index_of[id] for id in value[part]]) for part in PARTS))


def split_corpus(
    utterances: Sequence[Utterance],
    *,
    seed: int,
    fractions: Tuple[float, float, float] = PAPER_FRACTIONS,
) -> Split:
    """Splits a corpus at random, stratified by intent, repeats kept together.

    A record must not be member and non-member at once, so utterances with the same tokens (whatever
    their case and annotation) go to one part.

    Args:
        seed: the same seed and corpus give the same split.
        fractions: of train, validation, test; they add up to 1.

    Raises:
        UserError: fractions that are negative or do not add up to 1.

    Guarantee:
        Every part's size is within one of its fraction, as long as no group of repeats is larger
        than what its part still lacks. An intent's own fractions are within about one utterance.

    Edge cases:
        A group of repeats with several intents counts as its first one's. What rounding leaves
        over in one intent is carried to the next, so that labels which occur once are spread over
        the parts by the fractions, and do not all end in the largest.

    Source: the paper's 45:5:50; repeats and stratification are ours.
    """
    if min(fractions) < 0 or abs(sum(fractions) - 1.0) > 1e-9:
        raise UserError(f"the fractions {fractions} of a split must be ≥ 0 and add up to 1")
    generator = np.random.default_rng(seed)
    parts: List[List[int]] = [[], [], []]
    lacking = np.zeros(3)  # what rounding still owes to each part
    for groups in _groups_by_intent(utterances):
        lacking += np.array(fractions) * sum(len(group) for group in groups)
        repeated = [group for group in groups if len(group) > 1]
        for group in sorted(repeated, key=len, reverse=True):
            part = _draw_part(lacking, generator)
            parts[part] += group
            lacking[part] -= len(group)
        single = generator.permutation([group[0] for group in groups if len(group) == 1])
        counts = _whole_counts(lacking, len(single), generator)
        for part, chosen in enumerate(np.split(single, np.cumsum(counts)[:-1])):
            parts[part] += chosen.tolist()
        lacking -= counts
    return Split(*(_indices(part) for part in parts))


def join_parts(parts: Dict[str, List[Utterance]]) -> Tuple[List[Utterance], Split]:
    """One list and the split that takes it apart again: a corpus' own split.

    Edge cases: repeats stay where the corpus has them, also on two sides.
    """
    utterances = [utterance for part in PARTS for utterance in parts[part]]
    bounds = np.cumsum([0] + [len(parts[part]) for part in PARTS])
    return utterances, Split(*(np.arange(a, b) for a, b in zip(bounds, bounds[1:])))


def _groups_by_intent(utterances: Sequence[Utterance]) -> List[List[List[int]]]:
    """For each intent, the most frequent first, its groups of repeated utterances."""
    groups: Dict[str, List[int]] = {}
    for index, utterance in enumerate(utterances):
        groups.setdefault("\0".join(utterance.tokens).lower(), []).append(index)
    strata: Dict[str, List[List[int]]] = {}
    for group in groups.values():
        strata.setdefault(utterances[group[0]].intent, []).append(group)
    return sorted(strata.values(), key=len, reverse=True)


def _draw_part(lacking: np.ndarray, generator: np.random.Generator) -> int:
    """A part, with probability proportional to what it still lacks."""
    weights = lacking.clip(min=0.0)  # they add up to at least what is still to be placed
    return int(generator.choice(3, p=weights / weights.sum()))


def _whole_counts(lacking: np.ndarray, total: int, generator: np.random.Generator) -> np.ndarray:
    """Whole numbers that add up to `total`, as near to `lacking` as can be.

    The fractions that rounding leaves decide by lot who gets the last ones.
    """
    counts = np.floor(lacking.clip(min=0.0)).astype(np.int64)
    while counts.sum() > total:  # only where repeats overfilled another part
        counts[counts.argmax()] -= 1
    while counts.sum() < total:
        counts[_draw_part(lacking - counts, generator)] += 1
    return counts


def _indices(values: Sequence[int]) -> np.ndarray:
    """Ascending int64."""
    return np.sort(np.asarray(values, dtype=np.int64))
