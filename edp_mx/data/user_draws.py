"""The sampler whose unit is a user: a drawn user takes part with some of their utterances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Iterator, Optional, Tuple

import numpy as np

from edp_mx.data.columns import gathered
from edp_mx.data.draws import Draw, Sampler
from edp_mx.data.secret_words import SecretWords


@dataclass(frozen=True, eq=False)
class Users(Sampler):
    """Each drawn user is a unit, with at most K of their utterances.

    Attributes:
        records, offsets: the utterances of each user, see `users.records_by_user`.
        max_utterances_per_user: K.
        insecure_fixed_seed: makes the choices repeatable, hence no secret; for tests only.

    Guarantee: a user is drawn as a place of a `Shard` (at most once per epoch) or a `PoissonShard`
        (independently in each step). If a user has more than K utterances, every set of K of them
        is equally likely (up to ties of 64-bit words: c utterances have one less than once in 2⁶⁴ /
        c² choices), independently of all other users, steps and epochs; otherwise all of them take
        part. The choice is as secret as Poisson draws; `training.seed` fixes only the deal of
        users. The number of a user's utterances changes the draw of no other user.

    Edge cases: a user without utterances is a unit of size 0. A neighbouring corpus has the same n;
        one user's place is empty (zero_out) or taken by another user (replace_one).
    """

    unit: ClassVar[str] = "user"

    records: np.ndarray
    offsets: np.ndarray
    max_utterances_per_user: int
    rank: int
    insecure_fixed_seed: Optional[int] = None

    @property
    def indices(self) -> np.ndarray:
        found, _ = self._records_of(super().indices)
        return np.sort(found)

    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield one unit per drawn user; its records ascend."""
        words = SecretWords(
            "choice of utterances",
            insecure_fixed_seed=self.insecure_fixed_seed,
            rank=self.rank,
            epoch=epoch,
        )
        (shard,) = self.lanes
        for users in shard.micro_batches(epoch):
            yield self._chosen(users, words)

    def _chosen(self, users: np.ndarray, words: SecretWords) -> Draw:
        """Choose at most K utterances of each user, (n,), except of those whose place is empty."""
        records, counts = self._records_of(users)  # (R,), (n,)
        begins = np.repeat(np.cumsum(counts) - counts, counts)  # (R,)
        units = np.repeat(np.arange(len(users)), counts)  # (R,)
        # Each user's records in a random order, of which the first K take part. Words are drawn for
        # empty places too, so that these change no other user's choice.
        order = np.lexsort((words.next(len(records)), units))
        is_taken = np.empty(len(records), bool)
        is_taken[order] = np.arange(len(records)) - begins < self.max_utterances_per_user
        is_present = ~np.isin(users, self.empty)  # (n,)
        is_taken &= is_present[units]
        sizes = np.minimum(counts, self.max_utterances_per_user)[is_present]
        return Draw(records[is_taken].astype(np.int64), sizes.astype(np.int64))

    def _records_of(self, users: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Return the records of some users, one user after the other, and how many each has."""
        starts, ends = self.offsets[users], self.offsets[users + 1]
        return gathered(self.records, starts, ends - starts)[0], ends - starts
