"""Random utterances that a one-run audit inserts into the training part, each by a coin."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import List, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.errors import UserError
from edp_mx.runs.mechanism import random_utterance


@dataclass(frozen=True)
class Canaries:
    """m canaries, each of random utterances, and the fair coins that include them.

    Where users are protected, a canary is a user who repeats one utterance `utterances_per_canary`
    times, since gradients in one direction move the sum furthest.

    Guarantee:
        The turn of a coin makes a neighbouring data set in the sense of the run's ε, with the same
        shards and the same n. replace_one: an utterance of the corpus takes the place of an
        excluded canary (`insert`). zero_out: its place stays empty and adds no gradient (`insert`
        and `place`); an utterance of the corpus there would be another kind of neighbour, which a
        κ of 1 or the Poisson pair of zero_out does not count.
    """

    utterances: Tuple[Utterance, ...]
    is_member: Tuple[bool, ...]
    utterances_per_canary: int = 1

    @classmethod
    def draw(
        cls, vocabulary: Vocabulary, *, count: int, tokens: int, utterances_per_canary: int = 1
    ) -> Canaries:
        """Draw canaries with random numbers of the operating system."""
        if vocabulary.tokenizer is not None:
            words = vocabulary.tokenizer.whole_words()
        else:
            words = list(vocabulary.words[2:])  # without padding and the unknown word
        if not words:
            raise UserError("data.vocabulary: it has no words to make canaries from")
        generator = np.random.default_rng(secrets.randbits(128))
        utterances = [random_utterance(vocabulary, words, tokens, generator) for _ in range(count)]
        repeated = [
            replace(utterance, id=f"canary/{i}/{again}")
            for i, utterance in enumerate(utterances)
            for again in range(utterances_per_canary)
        ]
        coins = secrets.randbits(count)
        is_member = tuple(bool(coins >> i & 1) for i in range(count))
        return cls(tuple(repeated), is_member, utterances_per_canary)

    def insert(self, corpus: Sequence[Utterance], *, adjacency: str) -> List[Utterance]:
        """Return the corpus followed by one place per utterance of a canary, whatever the coins.

        Under zero_out each canary is in its place, which `place` empties: so the lengths of all
        places, which count as public, do not depend on the coins either.
        """
        if adjacency == "zero_out":
            return [*corpus, *self.utterances]
        places = [
            utterance if is_member else corpus[i % len(corpus)]
            for i, (utterance, is_member) in enumerate(
                zip(self.utterances, np.repeat(self.is_member, self.utterances_per_canary))
            )
        ]
        return [*corpus, *places]

    def place(self, sampler: Sampler, *, first: int, adjacency: str) -> Sampler:
        """Return the sampler to train with: under zero_out it skips the excluded canaries.

        The given one is over all places; α may be taken from it without revealing the coins. The
        first canary is `first` among records, or among users where users are drawn.
        """
        if adjacency != "zero_out":
            return sampler
        return sampler.without(first + np.flatnonzero(~np.asarray(self.is_member, bool)))

    def users(self, users: np.ndarray) -> np.ndarray:
        """Return the user of each utterance of `insert`: each canary is one new user.

        Records of the corpus are numbered from 0.
        """
        first = int(users.max(initial=-1)) + 1
        new = first + np.repeat(np.arange(len(self.is_member)), self.utterances_per_canary)
        return np.concatenate([users, new.astype(users.dtype)])
