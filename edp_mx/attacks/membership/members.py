"""Choice of members and non-members: equally many, and no text on both sides."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Collection, Dict, List, Optional, Sequence, Set

import numpy as np

from edp_mx.data.strata import folded_text
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import UNK, Vocabulary
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    """Utterances of an attack: equally many members and non-members; no text occurs twice.

    The reference are further ones that were not trained on. How many were left out, and why, is
    said in words.
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
    has_public_labels: bool = False,
) -> Chosen:
    """Draw members from the training part and equally many non-members from the test part.

    The reference is the validation part with the test utterances that are not drawn.

    Args:
        slots: labels of the model. An utterance with another label is left out: its loss is
            infinite, and the label alone shows that it was not trained on.
        intents: likewise.
        is_balanced: draw equally many members and non-members of each intent.
        size: members to draw at most; 0: all.
        has_public_labels: the labels of the model do not come from its training part.

    Guarantee: utterances with equal tokens in lower case are one text, whatever their annotation. A
    text that occurs in two parts is on neither side. One rule holds for both sides: a member is
    kept only if it would have been kept in the test part. So a member is also left out if no other
    utterance taught the model one of its labels. Repeats within a part count once, so that the
    judged utterances are independent, as the intervals assume.
    """
    parts = [_by_text(part) for part in (train, test, validation)]
    members, others, reference = (_only_in(part, parts) for part in parts)
    known = {*(f"tag {tag}" for tag in slots), *(f"intent {intent}" for intent in intents)}
    taught = known if has_public_labels else _taught_twice(parts[0])
    kept = [u for u in members if taught >= _labels_of(u)]
    kept_others = [u for u in others if known >= _labels_of(u)]
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x3E3B]))
    drawn_members, drawn_others = _draw(kept, kept_others, generator, is_balanced, size)
    if not drawn_members:
        raise UserError(
            f"no pair of members and non-members is left to compare: "
            f"{count_of(len(kept), 'different member')} and "
            f"{count_of(len(kept_others), 'non-member')}"
        )
    _warn_of_labels(drawn_members, drawn_others)
    repeats = len(train) + len(test) - len(parts[0]) - len(parts[1])
    shared = len(parts[0]) + len(parts[1]) - len(members) - len(others)
    unknown = len(members) + len(others) - len(kept) - len(kept_others)
    why = {
        "repeats of others in their part": repeats,
        "in two parts": shared,
        "with a label that no other training utterance has": unknown,
    }
    drawn = {id(utterance) for utterance in drawn_others}
    spare = [u for u in kept_others if id(u) not in drawn]
    return Chosen(
        drawn_members,
        drawn_others,
        [u for u in reference if known >= _labels_of(u)] + spare,
        "; ".join(f"{count} {reason}" for reason, count in why.items() if count),
    )


def _warn_of_labels(members: List[Utterance], others: List[Utterance]) -> None:
    """Warn of a label of which one side has far more: 5 points, and 4 standard deviations."""
    ours, theirs = (Counter(u.intent for u in side) for side in (members, others))
    name = max(sorted({*ours, *theirs}), key=lambda each: abs(ours[each] - theirs[each]))
    p, q = ours[name] / len(members), theirs[name] / len(others)
    if abs(p - q) > max(0.05, 4 * ((p + q) / len(members)) ** 0.5):
        logger.warning(
            "%.1f %% of the members and %.1f %% of the others have the label %r: what an attack "
            "finds may be that; --balanced takes equally many of each label",
            *(100 * p, 100 * q, name),
        )


def unknown_words(utterances: Sequence[Utterance], vocabulary: Vocabulary) -> Optional[np.ndarray]:
    """Count the unknown words of each utterance (U,), if the words come from the training part.

    Every word of a member is then known, so that an unknown word gives a non-member away without
    any model. None where the words are public or are word pieces.
    """
    if vocabulary.word_source != "train" or vocabulary.tokenizer is not None:
        return None
    counts = [sum(vocabulary.word_id(t) == UNK for t in u.tokens) for u in utterances]
    return np.array(counts, np.int64)


def _by_text(part: Sequence[Utterance]) -> Dict[str, Utterance]:
    """Return the first utterance of each text."""
    found: Dict[str, Utterance] = {}
    for utterance in part:
        found.setdefault(folded_text(utterance), utterance)
    return found


def _only_in(part: Dict[str, Utterance], parts: List[Dict[str, Utterance]]) -> List[Utterance]:
    """Return the utterances of a part whose text is in no other part."""
    others = [other for other in parts if other is not part]
    return [u for text, u in part.items() if not any(text in other for other in others)]


def _labels_of(utterance: Utterance) -> Set[str]:
    return {*(f"tag {tag}" for tag in utterance.slots), f"intent {utterance.intent}"}


def _taught_twice(train: Dict[str, Utterance]) -> Set[str]:
    """Return the labels of two texts or more."""
    counts = Counter(label for utterance in train.values() for label in _labels_of(utterance))
    return {label for label, count in counts.items() if count > 1}


def _draw(
    members: List[Utterance],
    others: List[Utterance],
    generator: np.random.Generator,
    is_balanced: bool,
    size: int,
) -> List[List[Utterance]]:
    """Draw equally many of each side (and of each intent, if balanced), in their order."""
    sides = [members, others]
    if is_balanced:
        shared = sorted({u.intent for u in members} & {u.intent for u in others})
        pairs = [[[u for u in side if u.intent == intent] for side in sides] for intent in shared]
        counts = [min(map(len, pair)) for pair in pairs]
        if size and sum(counts) > size:
            counts = _shrunk(counts, size)
    else:
        pairs, counts = [sides], [min(len(members), len(others), size or len(members))]
    drawn: List[List[Utterance]] = [[], []]
    for pair, count in zip(pairs, counts):
        for side, found in zip(pair, drawn):
            places = np.sort(generator.choice(len(side), size=count, replace=False))
            found += [side[i] for i in places]
    return drawn


def _shrunk(counts: List[int], size: int) -> List[int]:
    """Scale counts down to the sum `size`, rounding by the largest remainders."""
    shares = [divmod(count * size, sum(counts)) for count in counts]
    missing = size - sum(whole for whole, _ in shares)
    most = sorted(range(len(counts)), key=lambda i: -shares[i][1])[:missing]
    return [whole + (i in most) for i, (whole, _) in enumerate(shares)]
