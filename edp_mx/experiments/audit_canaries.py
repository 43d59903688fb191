"""Utterances that nobody would say, some of them trained on: what a one-run audit looks for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import List, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError


@dataclass(frozen=True)
class Canaries:
    """m random utterances, and which of them are in the training data.

    Attributes:
        utterances: words, tags and intents drawn alike from the vocabulary.
        is_member: fair coins from the operating system.
    """

    utterances: Tuple[Utterance, ...]
    is_member: Tuple[bool, ...]

    @classmethod
    def draw(cls, vocabulary: Vocabulary, *, count: int, tokens: int) -> Canaries:
        """New ones, from the operating system's random numbers.

        Raises:
            UserError: the vocabulary has no words.
        """
        words = _plain_words(vocabulary)
        generator = np.random.default_rng(secrets.randbits(128))
        utterances = [
            Utterance(
                tokens=tuple(generator.choice(words, tokens).tolist()),
                slots=tuple(generator.choice(vocabulary.slots, tokens).tolist()),
                intent=str(generator.choice(vocabulary.intents)),
                id=f"canary/{i}",
            )
            for i in range(count)
        ]
        coins = secrets.randbits(count)
        return cls(tuple(utterances), tuple(bool(coins >> i & 1) for i in range(count)))

    def insert(self, corpus: Sequence[Utterance]) -> List[Utterance]:
        """The corpus with m more places; a plain utterance takes that of a canary which is out.

        So each coin replaces one utterance and moves no other: a neighbour under replace-one, in
        the same shards and batches.
        """
        places = [
            canary if is_member else corpus[i % len(corpus)]
            for i, (canary, is_member) in enumerate(zip(self.utterances, self.is_member))
        ]
        return [*corpus, *places]


def _plain_words(vocabulary: Vocabulary) -> List[str]:
    """Words to draw from: those of the vocabulary, or the pieces that are words by themselves."""
    if vocabulary.wordpiece is not None:
        words = [p for p in vocabulary.wordpiece.pieces if not p.startswith(("##", "["))]
    else:
        words = list(vocabulary.words[2:])  # without padding and the unknown word
    if not words:
        raise UserError("data.vocabulary: there is no word in it to make canaries of")
    return words
