"""Utterances that nobody would say, some of them trained on: what a one-run audit looks for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.poisson_sampling import AnyShard, PoissonShard
from edp_mx.data.sampling import Shard
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import Workers
from edp_mx.errors import UserError
from edp_mx.models.intent_slot import IntentSlotModel


@dataclass(frozen=True)
class Canaries:
    """m random utterances, and which of them are in the training data.

    Attributes:
        utterances: words, tags and intents drawn alike from the vocabulary.
        is_member: fair coins from the operating system.

    Guarantee:
        A coin that turns makes a neighbour of the kind that the run's ε speaks of, in the same
        shards and with the same n. replace_one: a plain utterance takes the place of a canary that
        is out (`insert`). zero_out: its place stays empty, so that it adds no gradient
        (`insert` and `empty_places`): a plain utterance there would be another neighbour, which a
        κ of 1 or the Poisson pair of zero_out does not count.
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

    def insert(self, corpus: Sequence[Utterance], *, adjacency: str) -> List[Utterance]:
        """The corpus with m more places, the same ones whatever the coins.

        Under zero_out each canary is in its place, which `empty_places` has to be told of: so the
        lengths of all places, which count as public, do not depend on the coins either.
        """
        if adjacency == "zero_out":
            return [*corpus, *self.utterances]
        places = [
            canary if is_member else corpus[i % len(corpus)]
            for i, (canary, is_member) in enumerate(zip(self.utterances, self.is_member))
        ]
        return [*corpus, *places]

    def empty_places(self, shard: AnyShard, *, first: int, adjacency: str) -> AnyShard:
        """The shard as it is trained on, the canaries that are out left out under zero_out.

        Args:
            shard: dealt for all places; α may be taken from it, which then tells nothing of coins.
            first: place of the first canary.
        """
        if adjacency != "zero_out":
            return shard
        empty = first + np.flatnonzero(~np.asarray(self.is_member, bool))
        return without(shard, empty)


def without(shard: AnyShard, empty: np.ndarray) -> AnyShard:
    """The shard with empty places: same deal, same steps, same divisor, other records as before.

    Args:
        empty: (E,) int64, places of any shard.
    """
    if isinstance(shard, PoissonShard):  # each record is drawn for itself: none moves another
        return replace(shard, indices=np.setdiff1d(shard.indices, empty))
    return _ShuffledWithGaps(
        shard.buckets, shard.bucket_steps, shard.micro_batch_size, shard.seed, shard.rank, empty
    )


@dataclass(frozen=True, eq=False)
class _ShuffledWithGaps(Shard):
    """A shard whose micro-batches lack what lies in an empty place; they may be empty."""

    empty: np.ndarray

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Those of the whole shard, each (M or fewer,) int64."""
        for indices in super().micro_batches(epoch):
            yield indices[~np.isin(indices, self.empty)]


def canary_losses(
    model: IntentSlotModel, canaries: EncodedCorpus, *, workers: Workers, batch_size: int
) -> np.ndarray:
    """The loss of each canary without dropout, (m,) float64; shared out, the same on all workers.

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
    if vocabulary.wordpiece is not None:
        words = [p for p in vocabulary.wordpiece.pieces if not p.startswith(("##", "["))]
    else:
        words = list(vocabulary.words[2:])  # without padding and the unknown word
    if not words:
        raise UserError("data.vocabulary: there is no word in it to make canaries of")
    return words
