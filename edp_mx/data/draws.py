"""The units that a worker clips in one step: micro-batches or utterances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Iterator, List, Tuple, TypeVar

import numpy as np

from edp_mx.data.poisson_sampling import AnyShard

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
        """|M|, the public size of a lane, expected for Poisson: the same divisor whatever was
        drawn.
        """
        return self.lanes[0].micro_batch_size

    @property
    def micro_batches_per_worker(self) -> int:
        return len(self.lanes)

    @property
    def indices(self) -> np.ndarray:
        """The records of this worker, ascending, without those of empty places."""
        return self._present(np.sort(np.concatenate([lane.indices for lane in self.lanes])))

    @abstractmethod
    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield what this worker clips in each step of an epoch."""

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
