"""Utterances that nobody would say, some of them trained on: what a one-run audit looks for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Dict, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.draws import Sampler
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.runtime.distributed import Workers


@dataclass(frozen=True)
class Canaries:
    """m canaries of random utterances, and which of them are in the training data.

    Attributes:
        utterances: words, tags and intents drawn alike from the vocabulary; one canary's after the
            other's.
        is_member: fair coins from the operating system, one per canary.
        utterances_per_canary: 1; where users are what is protected, a canary is a user who says one
            thing so often, since gradients that point one way move the sum furthest.

    Guarantee:
        A coin that turns makes a neighbour of the kind that the run's ε speaks of, in the same
        shards and with the same n. replace_one: a plain utterance takes the place of a canary that
        is out (`insert`). zero_out: its place stays empty, so that it adds no gradient
        (`insert` and `place`): a plain utterance there would be another neighbour, which a
        κ of 1 or the Poisson pair of zero_out does not count.
    """

    utterances: Tuple[Utterance, ...]
    is_member: Tuple[bool, ...]
    utterances_per_canary: int = 1

    @classmethod
    def draw(
        cls, vocabulary: Vocabulary, *, count: int, tokens: int, utterances_per_canary: int = 1
    ) -> Canaries:
        """Draw new ones from the operating system's random numbers.

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
        repeated = [
            replace(utterance, id=f"{utterance.id}/{again}")
            for utterance in utterances
            for again in range(utterances_per_canary)
        ]
        coins = secrets.randbits(count)
        is_member = tuple(bool(coins >> i & 1) for i in range(count))
        return cls(tuple(repeated), is_member, utterances_per_canary)

    def insert(self, corpus: Sequence[Utterance], *, adjacency: str) -> List[Utterance]:
        """The corpus with places for the canaries, the same ones whatever the coins.

        Under zero_out each canary is in its place, which `place` empties: so the
        lengths of all places, which count as public, do not depend on the coins either.
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
        """The sampler that is trained with: under zero_out the canaries that are out leave gaps.

        Args:
            sampler: dealt for all places; α may be taken from it, which then tells nothing of the
                coins.
            first: place of the first canary: a record's, or a user's where users are drawn.
        """
        if adjacency != "zero_out":
            return sampler
        return sampler.without(first + np.flatnonzero(~np.asarray(self.is_member, bool)))

    def users(self, users: np.ndarray) -> np.ndarray:
        """Who says each utterance of `insert`: each canary is a user of its own.

        Shapes: users (U,), of the corpus, from 0 → (U + m · utterances per canary,).
        """
        first = int(users.max(initial=-1)) + 1
        new = first + np.repeat(np.arange(len(self.is_member)), self.utterances_per_canary)
        return np.concatenate([users, new.astype(users.dtype)])


def canary_losses(
    model: IntentSlotModel, canaries: EncodedCorpus, *, workers: Workers, batch_size: int
) -> np.ndarray:
    """The loss of each utterance without dropout, (n,) float64; the same on all workers.

    Args:
        batch_size: how many one worker scores at once.
    """
    parts = [
        range(start, min(start + batch_size, len(canaries)))
        for start in range(0, len(canaries), batch_size)
    ]
    share: Dict[int, np.ndarray] = {}
    with autograd.pause(train_mode=False):
        for number in range(workers.rank, len(parts), workers.size):
            losses: mx.nd.NDArray = model.loss(canaries.batch(parts[number]))  # (n,)
            share[number] = losses.asnumpy().astype(np.float64)
    found: Dict[int, np.ndarray] = {}
    for one in workers.gather(share):
        found.update(one)
    return np.concatenate([found[number] for number in range(len(parts))])


def _plain_words(vocabulary: Vocabulary) -> List[str]:
    """Words to draw from: those of the vocabulary, or the pieces that are words by themselves."""
    if vocabulary.tokenizer is not None:
        words = vocabulary.tokenizer.whole_words()
    else:
        words = list(vocabulary.words[2:])  # without padding and the unknown word
    if not words:
        raise UserError("data.vocabulary: there is no word in it to make canaries of")
    return words
