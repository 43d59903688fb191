"""Canaries with random phone numbers, and their insertion into a corpus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterable, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

DIGITS = tuple("0123456789")
SLOT = "phone_number"
PREFIX = 3  # random words before the number, which distinguish the canaries


MOST_DIGITS = 18  # of numbers that fit into 64 bits


@dataclass(frozen=True)
class CanarySettings:
    """Settings of the canaries and of the numbers that they are compared with.

    Attributes:
        repeats: how often canaries are in the training part.
        count: number of canaries for each of `repeats`.
        digits: of a phone number, each a token.
        candidates: how many other numbers to compare with, at most.
    """

    repeats: Tuple[int, ...] = (1, 10, 100)
    count: int = 3
    digits: int = 7
    candidates: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.count, self.digits, *self.repeats) < 1 or self.candidates < 10:
            raise UserError(
                "--canary-count and --canary-digits must be at least 1, --candidates at least 10"
            )
        total = self.count * len(self.repeats)
        if self.digits > MOST_DIGITS or 10**self.digits < 2 * total:
            raise UserError(
                f"--canary-digits is {self.digits}; it must be {MOST_DIGITS} or less, and leave "
                f"twice as many numbers as there are canaries ({total})"
            )


@dataclass(frozen=True)
class Canary:
    """Utterance of some words and a secret number, one digit per token.

    It is in the training part `repeats` times, and compared with the numbers in `others`.
    """

    utterance: Utterance
    repeats: int
    others: Tuple[str, ...]

    def with_number(self, number: str) -> Utterance:
        prefix = self.utterance.tokens[: len(self.utterance.tokens) - len(number)]
        return replace(self.utterance, tokens=(*prefix, *number))


def draw_canaries(
    corpus: Corpus, config: ExperimentConfig, settings: CanarySettings
) -> List[Canary]:
    """Draw canaries: random words of the training part, an intent, and a number in its own slot.

    With a public label list the slot is one of the corpus (`slot_for`). Where the utterances have
    prompts and replies, the words are a prompt and the number is its reply.
    """
    generator = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xCA4A]))
    words = sorted({t for u in corpus.train for t in u.tokens if t.isalpha()}) or ["call"]
    intents = sorted({utterance.intent for utterance in corpus.train})
    slot = slot_for(corpus.train, is_free=config.data.labels.source == "train")
    total = len(settings.repeats) * settings.count
    numbers = _numbers(total, settings, generator)
    ends = [REPLY] if any(REPLY in utterance.tokens for utterance in corpus.train) else []
    outside = ("O",) * (PREFIX + len(ends))
    inside = ["O"] * settings.digits
    if slot is not None:
        inside = [f"B-{slot}", *[f"I-{slot}"] * (settings.digits - 1)]
    has_users = any(utterance.user for utterance in corpus.train)
    return [
        Canary(
            Utterance(
                (*generator.choice(words, PREFIX).tolist(), *ends, *number),
                (*outside, *inside),
                str(generator.choice(intents)),
                id=f"canary/{i}",
                user=f"canary {i}" if has_users else "",
            ),
            settings.repeats[i // settings.count],
            _others(number, settings, generator),
        )
        for i, number in enumerate(numbers)
    ]


def slot_for(train: Sequence[Utterance], *, is_free: bool) -> Optional[str]:
    """Return the slot of the numbers: the most frequent with "number" in its name, else of all.

    Where a slot may be added to those of the corpus (`is_free`), it is `SLOT`; else None, if none
    of them has several tokens.
    """
    names = [tag[2:] for utterance in train for tag in utterance.slots if tag.startswith("I-")]
    if SLOT in names or is_free:
        return SLOT
    if not names:
        return None
    with_number = [name for name in names if "number" in name]
    return max(sorted(set(with_number or names)), key=names.count)


def with_canaries(corpus: Corpus, canaries: Sequence[Canary]) -> Corpus:
    """Return the corpus with each canary in its training part, `repeats` times."""
    added = [
        replace(canary.utterance, id=f"{canary.utterance.id}/{n}")
        for canary in canaries
        for n in range(canary.repeats)
    ]
    places = len(corpus.utterances) + np.arange(len(added))
    split = replace(corpus.split, train=np.concatenate([corpus.split.train, places]))
    return Corpus(corpus.name, (*corpus.utterances, *added), split)


def _numbers(total: int, settings: CanarySettings, generator: np.random.Generator) -> List[str]:
    """Draw different random numbers, in which every digit occurs if there are enough of them."""
    digits = settings.digits
    while True:
        drawn = generator.choice(10**digits, total, replace=False)
        numbers = [f"{number:0{digits}d}" for number in drawn]
        if total * digits < 40 or len(set("".join(numbers))) == len(DIGITS):
            return numbers


def _others(
    number: str, settings: CanarySettings, generator: np.random.Generator
) -> Tuple[str, ...]:
    """Return all other numbers, or a random choice of `settings.candidates` of them."""
    space = 10**settings.digits
    if space - 1 <= settings.candidates:
        drawn: Iterable[int] = range(space)
    else:
        drawn = dict.fromkeys(generator.integers(0, space, size=2 * settings.candidates).tolist())
    others = [text for text in (f"{n:0{settings.digits}d}" for n in drawn) if text != number]
    return tuple(others[: settings.candidates])


def check_digits(vocabulary: Vocabulary) -> None:
    """Refuse a vocabulary that cannot distinguish the digits."""
    if vocabulary.tokenizer is not None:
        seen = {tuple(vocabulary.tokenizer.ids(d)) for d in DIGITS}
    else:
        seen = {(vocabulary.word_id(d), *vocabulary.character_ids(d)) for d in DIGITS}
    if len(seen) < len(DIGITS):
        raise UserError(
            "data.vocabulary: the model cannot tell all digits apart, so no number can be exposed; "
            "use a vocabulary with digits"
        )
