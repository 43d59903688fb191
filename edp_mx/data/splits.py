"""Which utterances train, which validate, and which are never seen in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.columns import Numbers
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
        places = ([index_of[id] for id in value[part]] for part in PARTS)
        return cls(*(_indices([np.array(part, dtype=np.int64)]) for part in places))


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
    return split_by_keys(*keys_of(utterances), seed=seed, fractions=fractions)


def keys_of(utterances: Sequence[Utterance]) -> Tuple[np.ndarray, np.ndarray]:
    """Texts and intents as numbers, (U,) each: all that a split looks at."""
    texts, intents = Numbers(), Numbers()
    keys = [texts[folded_text(utterance)] for utterance in utterances]
    return np.array(keys, np.int64), np.array([intents[u.intent] for u in utterances], np.int64)


def folded_text(utterance: Utterance) -> str:
    """What two utterances have in common that count as repeats."""
    return "\0".join(utterance.tokens).lower()


def split_by_keys(
    keys: np.ndarray,
    intents: np.ndarray,
    *,
    seed: int,
    fractions: Tuple[float, float, float] = PAPER_FRACTIONS,
) -> Split:
    """`split_corpus`, of which only this is known: which utterances repeat, and the intents.

    Shapes: keys (U,), the same whole number for the same text and another for another; intents
    (U,), whole numbers.
    """
    if min(fractions) < 0 or abs(sum(fractions) - 1.0) > 1e-9:
        raise UserError(f"the fractions {fractions} of a split must be ≥ 0 and add up to 1")
    generator = np.random.default_rng(seed)
    parts: List[List[np.ndarray]] = [[], [], []]
    lacking = np.zeros(3)  # what rounding still owes to each part
    for single, repeated in _strata(keys, intents):
        lacking += np.array(fractions) * (len(single) + sum(len(group) for group in repeated))
        for group in sorted(repeated, key=len, reverse=True):
            part = _draw_part(lacking, generator)
            parts[part].append(group)
            lacking[part] -= len(group)
        single = generator.permutation(single)
        counts = _whole_counts(lacking, len(single), generator)
        for part, chosen in enumerate(np.split(single, np.cumsum(counts)[:-1])):
            parts[part].append(chosen)
        lacking -= counts
    return Split(*(_indices(part) for part in parts))


def own_split(
    sizes: Dict[str, int], keys: np.ndarray, intents: np.ndarray, *, seed: int, held_out: float
) -> Tuple[np.ndarray, Split]:
    """A corpus' own split, which may lack a validation part.

    Args:
        sizes: utterances of each part, in the order in which they were read.
        held_out: share of the training part that validates, where there is no validation part.

    Returns:
        Places of all utterances, those of the training part first, (U,), and the split of these.

    Edge cases: repeats stay where the corpus has them, also on two sides.

    Shapes: keys and intents as for `split_by_keys`.
    """
    ends = np.cumsum(list(sizes.values()))
    read = {part: np.arange(end - sizes[part], end) for part, end in zip(sizes, ends)}
    own = [read.get(part, np.arange(0)) for part in PARTS]
    if len(own[1]) == 0:
        train = own[0]
        fractions = (1.0 - held_out, held_out, 0.0)
        split = split_by_keys(keys[train], intents[train], seed=seed, fractions=fractions)
        own[0], own[1] = train[split.train], train[split.validation]
    bounds = np.cumsum([0] + [len(part) for part in own])
    return np.concatenate(own), Split(*(np.arange(a, b) for a, b in zip(bounds, bounds[1:])))


def _strata(keys: np.ndarray, intents: np.ndarray) -> Iterator[Tuple[np.ndarray, List[np.ndarray]]]:
    """For each intent, the one of most groups first: what occurs once, and the repeats' groups.

    Places are ascending, groups in the order of their first places; a group has its first one's
    intent.
    """
    if len(keys) == 0:
        return
    _, group = np.unique(keys, return_inverse=True)  # (U,)
    order = np.argsort(group, kind="stable")  # (U,)
    sizes = np.bincount(group)  # (G,)
    starts = np.cumsum(sizes) - sizes  # (G,)
    firsts = order[starts]  # (G,)
    by_place = np.argsort(firsts)  # (G,)
    stratum = intents[firsts[by_place]]  # (G,)
    kinds, seen, counts = np.unique(stratum, return_index=True, return_counts=True)
    for kind in kinds[np.lexsort([seen, -counts])]:  # ties: whose first group comes first
        groups = by_place[stratum == kind]
        is_single = sizes[groups] == 1
        repeated = groups[~is_single]
        yield (
            firsts[groups[is_single]],
            [order[starts[g] : starts[g] + sizes[g]] for g in repeated.tolist()],
        )


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


def _indices(places: Sequence[np.ndarray]) -> np.ndarray:
    """All of them, ascending int64."""
    return np.sort(np.concatenate([np.empty(0, np.int64), *places]))
