"""The units that a worker clips in one step: micro-batches, utterances or users."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Iterator, List, Optional, Tuple, TypeVar

import numpy as np

from edp_mx.dp.accounting.samplers import Sizes
from edp_mx.dp.sampling.poisson import AnyShard, SecretWords
from edp_mx.runtime.ragged import gathered

S = TypeVar("S", bound="Sampler")


@dataclass(frozen=True, eq=False)
class Draw:
    """The records that one worker clips in one step, grouped in consecutive units.

    Shapes: records (R,) int64; sizes (U,) int64, which add up to R. A unit may be empty.
    """

    records: np.ndarray
    sizes: np.ndarray

    def __post_init__(self) -> None:
        if int(self.sizes.sum()) != len(self.records):
            raise ValueError(f"sizes for {self.sizes.sum()} records, not {len(self.records)}")

    def units(self) -> List[np.ndarray]:
        ends = np.cumsum(self.sizes).tolist()
        return [self.records[end - size : end] for end, size in zip(ends, self.sizes.tolist())]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Decides who takes part in which step, on one worker; built by `dealing.deal`.

    Attributes:
        lanes: shards of places, dealt over all workers; a place is a record or a user.
        num_units: n, the number of records (or users) of all workers together; public.
        empty: (E,) int64, places that never take part, see `without`.
    """

    unit: ClassVar[str]

    lanes: Tuple[AnyShard, ...]
    num_units: int
    empty: np.ndarray

    @property
    def sampler(self) -> str:
        return self.lanes[0].sampler

    @property
    def steps_per_epoch(self) -> int:
        return self.lanes[0].steps_per_epoch

    @property
    def sample_rate(self) -> float:
        """Probability with which each place is drawn in a step; 1.0 for shuffle."""
        return self.lanes[0].sample_rate

    @property
    def micro_batch_size(self) -> float:
        """|M|, the public size of a lane, expected for Poisson: the divisor whatever was drawn."""
        return self.lanes[0].micro_batch_size

    @property
    def micro_batches_per_worker(self) -> int:
        return len(self.lanes)

    @property
    def sizes(self) -> Sizes:
        """The sizes of the training, of all workers."""
        return Sizes(
            self.num_units,
            self.micro_batch_size,
            self.micro_batches_per_worker,
            self.sample_rate,
            self.steps_per_epoch,
        )

    @property
    def indices(self) -> np.ndarray:
        """The records of this worker, ascending, without empty places."""
        return self._present(np.sort(np.concatenate([lane.indices for lane in self.lanes])))

    @abstractmethod
    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield the draw of this worker in each step of an epoch."""

    def without(self: S, places: np.ndarray) -> S:
        """Return the same sampler with empty places, (E,) records or users of any worker.

        Deal, steps, n and divisors are the same, and other places are drawn as before. The record
        of an empty place is left out when it is drawn, and nothing replaces it: a micro-batch is
        smaller, an utterance or a user is missing.
        """
        return replace(self, empty=np.union1d(self.empty, np.asarray(places, np.int64)))

    def _present(self, places: np.ndarray) -> np.ndarray:
        return places[~np.isin(places, self.empty)] if len(self.empty) else places


@dataclass(frozen=True, eq=False)
class MicroBatches(Sampler):
    """Algorithm 1 with k micro-batches per worker: the gradient of each is clipped as one.

    Guarantee: the records are dealt over the lanes of all workers. Lane number l draws the same
        micro-batches whichever worker has it (in distribution for Poisson, whose draws are secret).
        A micro-batch may be empty, for Poisson or because of empty places; it still counts.
    """

    unit: ClassVar[str] = "micro_batch"

    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield one unit per lane in each step."""
        for drawn in zip(*(lane.micro_batches(epoch) for lane in self.lanes)):
            present = [self._present(places) for places in drawn]
            yield Draw(np.concatenate(present), np.array([len(p) for p in present], np.int64))


@dataclass(frozen=True, eq=False)
class Utterances(Sampler):
    """Each drawn record is a unit of its own, clipped by itself."""

    unit: ClassVar[str] = "utterance"

    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield units of one record each, as many as are drawn, perhaps none."""
        (shard,) = self.lanes
        for places in shard.micro_batches(epoch):
            records = self._present(places)
            yield Draw(records, np.ones(len(records), np.int64))


@dataclass(frozen=True, eq=False)
class Users(Sampler):
    """Each drawn user is a unit, with at most K of their utterances.

    Attributes:
        records, offsets: the utterances of each user, see `dealing.records_by_user`.
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
