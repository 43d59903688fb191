"""Splits: which utterances train, which validate, and which are never seen in training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Sequence, Tuple

import numpy as np

from edp_mx.data.columnar_corpus import ids_at
from edp_mx.data.strata import places_where, strata
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, whole_file

PARTS = ("train", "validation", "test")
PAPER_FRACTIONS = (0.45, 0.05, 0.50)


@dataclass(frozen=True, eq=False)
class Split:
    """Ascending indices into a corpus; together the parts hold every index once."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def write(self, path: PathLike, utterances: Sequence[Utterance]) -> None:
        """Write the ids of each part as JSON, as `files.write_json` would, but in little memory."""
        with whole_file(path) as file:
            for begin, part in zip(("{", ",", ","), PARTS):
                file.write(f'{begin}\n  "{part}": ['.encode())
                end, between = "]", ""
                for id in ids_at(utterances, getattr(self, part)):
                    file.write(f"{between}\n    {json.dumps(id, ensure_ascii=False)}".encode())
                    end, between = "\n  ]", ","
                file.write(end.encode())
            file.write(b"\n}\n")

    @classmethod
    def from_json(cls, value: Dict[str, Any], utterances: Sequence[Utterance]) -> Split:
        """Return the split whose ids `write` wrote, of the same corpus."""
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
        return cls(*(np.sort(np.array(part, np.int64)) for part in places))


def split_by_keys(
    keys: np.ndarray,
    intents: np.ndarray,
    *,
    seed: int,
    fractions: Tuple[float, float, float] = PAPER_FRACTIONS,
) -> Split:
    """Split a corpus at random, stratified by intent, with equal keys on one side.

    With the keys of `strata.keys_of`, all utterances of a user go to one part, so that nobody is
    member and non-member at once. If the corpus names no users, utterances with the same tokens
    (whatever their case and annotation) go to one part, so that no record is both.

    Args:
        keys: (U,), the same whole number for all that must go to one part.
        intents: (U,), whole numbers.

    Guarantee: every part's size is within one of its fraction, as long as no group of equal keys is
        larger than what its part still lacks; without single utterances to fill up with, it is
        within twice the largest group. If all keys differ, an intent's own fractions are within
        about one utterance.

    Edge cases: a group with several intents counts as its first utterance's. What rounding leaves
        over in one intent is carried to the next, so that labels which occur once are spread over
        the parts by the fractions. If users are named, two users may say the same text on two
        sides: keeping texts together as well would tie most users to each other.

    Source: the paper's 45:5:50; users, repeats and stratification are ours.
    """
    generator = np.random.default_rng(seed)
    part_of = np.empty(len(keys), np.uint8)  # (U,)
    lacking = np.zeros(3)  # what rounding still owes to each part
    for single, repeated in strata(keys, intents):
        lacking += np.array(fractions) * (len(single) + int(repeated.sizes.sum()))
        for group in repeated.largest_first():
            part = _draw_part(lacking, generator)
            part_of[group] = part
            lacking[part] -= len(group)
        single = generator.permutation(single)
        counts = _whole_counts(lacking, len(single), generator)
        for part, chosen in enumerate(np.split(single, np.cumsum(counts)[:-1])):
            part_of[chosen] = part
        lacking -= counts
    return Split(*(places_where(part_of == part) for part in range(3)))


def own_split(
    sizes: Dict[str, int], keys: np.ndarray, intents: np.ndarray, *, seed: int, held_out: float
) -> Tuple[np.ndarray, Split]:
    """Return the places of all utterances, training first, (U,), and the split of these.

    Without a test part, the validation part takes its place. Without a validation part, the share
    `held_out` of the training part is drawn by `split_by_keys`. `sizes` are those of the parts as
    read.
    """
    ends = np.cumsum(list(sizes.values()))
    read = {part: _range(end - sizes[part], end) for part, end in zip(sizes, ends)}
    own = [read.get(part, _range(0, 0)) for part in PARTS]
    if len(own[2]) == 0:
        own[1:] = own[2], own[1]
    if len(own[1]) == 0:
        train = own[0]
        fractions = (1.0 - held_out, held_out, 0.0)
        split = split_by_keys(keys[train], intents[train], seed=seed, fractions=fractions)
        own[0], own[1] = train[split.train], train[split.validation]
    bounds = np.cumsum([0] + [len(part) for part in own])
    return np.concatenate(own), Split(*(_range(a, b) for a, b in zip(bounds, bounds[1:])))


def users_on_two_sides(split: Split, users: np.ndarray) -> int:
    """Count the users, (U,), with utterances in more than one part; 0 for `split_by_keys`."""
    sides = np.zeros(int(users.max(initial=-1)) + 1, np.uint8)  # a bit for each part
    for number, part in enumerate(PARTS):
        sides[users[getattr(split, part)]] |= np.uint8(1 << number)
    return int(np.isin(sides, (0, 1, 2, 4), invert=True).sum())


def _range(start: int, end: int) -> np.ndarray:
    return np.arange(start, end, dtype=np.int32)


def sizes_by(fractions: Sequence[float], total: int) -> Dict[str, int]:
    """Return the sizes of the parts that `split_by_keys` aims at; they add up to `total`."""
    bounds = np.round(np.cumsum([0.0, *fractions]) * total).astype(int)
    return dict(zip(PARTS, np.diff(bounds).tolist()))


def _draw_part(lacking: np.ndarray, generator: np.random.Generator) -> int:
    """Draw a part, with probability proportional to what it still lacks."""
    weights = lacking.clip(min=0.0)  # they add up to at least what is still to be placed
    return int(generator.choice(3, p=weights / weights.sum()))


def _whole_counts(lacking: np.ndarray, total: int, generator: np.random.Generator) -> np.ndarray:
    """Round `lacking` to whole numbers that add up to `total`; fractions draw for the last ones."""
    counts = np.floor(lacking.clip(min=0.0)).astype(np.int64)
    while counts.sum() > total:  # only where repeats overfilled another part
        counts[counts.argmax()] -= 1
    while counts.sum() < total:
        counts[_draw_part(lacking - counts, generator)] += 1
    return counts
