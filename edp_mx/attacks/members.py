"""Whom an attack is tried on: members and non-members, as many of each, no text on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Sequence

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError


@dataclass(frozen=True)
class Chosen:
    """The utterances of an attack.

    Attributes:
        members, non_members: as many of each; no text occurs twice, on either side.
        reference: further utterances that were not trained on, each text once.
        left_out: how many were left out, and why.
    """

    members: List[Utterance]
    non_members: List[Utterance]
    reference: List[Utterance]
    left_out: str


def choose(
    train: Sequence[Utterance],
    test: Sequence[Utterance],
    validation: Sequence[Utterance],
    *,
    slots: Collection[str],
    intents: Collection[str],
    seed: int,
    is_balanced: bool = False,
    size: int = 0,
) -> Chosen:
    """Draws members from the training part and as many non-members from the test part.

    Args:
        validation: with the test utterances that are not drawn it is the reference.
        slots, intents: that the model knows. An utterance with another label is left out: its loss
            is infinite, and it is found without any model, since no such label was trained on.
        seed: of the draw.
        is_balanced: as many members as non-members of each intent.
        size: how many members to draw at most; 0: as many as there are.

    Raises:
        UserError: nobody is left on one side.

    Guarantee: utterances with equal tokens, whatever their case and annotation, are one text. A
    text that occurs in two parts is on neither side.

    Edge cases: repeats within a part count once, so that the utterances that are judged are
    independent of each other, as intervals take them to be.
    """
    known_tags, known_intents = set(slots), set(intents)

    def is_known(utterance: Utterance) -> bool:
        return utterance.intent in known_intents and known_tags.issuperset(utterance.slots)

    texts = [_by_text(part) for part in (train, test, validation)]
    inside, outside, aside = texts
    members = [u for text, u in inside.items() if text not in outside and text not in aside]
    candidates = [u for text, u in outside.items() if text not in inside and text not in aside]
    reference = [u for text, u in aside.items() if text not in inside and text not in outside]
    non_members = [u for u in candidates if is_known(u)]
    counts = (
        (len(train) + len(test) - len(inside) - len(outside), "repeats of others in their part"),
        (len(inside) + len(outside) - len(members) - len(candidates), "in two parts"),
        (len(candidates) - len(non_members), "with a label that the model does not know"),
    )
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x3E3B]))
    drawn_members, drawn_others = _draw(members, non_members, generator, is_balanced, size)
    if not drawn_members:
        raise UserError(
            f"no members and non-members are left to compare ({len(members)} and "
            f"{len(non_members)} different utterances)"
        )
    drawn = {id(utterance) for utterance in drawn_others}
    spare = [u for u in non_members if id(u) not in drawn]
    return Chosen(
        drawn_members,
        drawn_others,
        [u for u in reference if is_known(u)] + spare,
        "; ".join(f"{count} {why}" for count, why in counts if count),
    )


def text_of(utterance: Utterance) -> str:
    """What makes two utterances repeats of each other: their tokens in lower case."""
    return "\0".join(utterance.tokens).lower()


def _by_text(part: Sequence[Utterance]) -> Dict[str, Utterance]:
    """The first utterance of each text."""
    found: Dict[str, Utterance] = {}
    for utterance in part:
        found.setdefault(text_of(utterance), utterance)
    return found


def _draw(
    members: List[Utterance],
    others: List[Utterance],
    generator: np.random.Generator,
    is_balanced: bool,
    size: int,
) -> List[List[Utterance]]:
    """As many of each side, at random, in their first order; of each intent too, if balanced."""
    sides = [members, others]
    if is_balanced:
        shared = sorted({u.intent for u in members} & {u.intent for u in others})
        pairs = [[[u for u in side if u.intent == intent] for side in sides] for intent in shared]
        counts = [min(map(len, pair)) for pair in pairs]
        if size and sum(counts) > size:  # each intent shrinks in proportion
            counts = [count * size // sum(counts) for count in counts]
    else:
        pairs, counts = [sides], [min(len(members), len(others), size or len(members))]
    drawn: List[List[Utterance]] = [[], []]
    for pair, count in zip(pairs, counts):
        for side, found in zip(pair, drawn):
            places = np.sort(generator.choice(len(side), size=count, replace=False))
            found += [side[i] for i in places]
    return drawn
