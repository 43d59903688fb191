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

    Raises:
        ValueError: the sizes do not add up to the number of records.

    Shapes: records (R,) int64; sizes (U,) int64, which add up to R. A unit may be empty.
    """

    records: np.ndarray
    sizes: np.ndarray

    def __post_init__(self) -> None:
        if int(self.sizes.sum()) != len(self.records):
            raise ValueError(f"sizes for {self.sizes.sum()} records, not {len(self.records)}")

    def units(self) -> List[np.ndarray]:
        """Return the records of each unit, U vectors."""
        ends = np.cumsum(self.sizes).tolist()
        return [self.records[end - size : end] for end, size in zip(ends, self.sizes.tolist())]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Decides who takes part in which step, on one worker; built by `dealing.deal`.

    Attributes:
        unit: "micro_batch", "utterance" or "user".
        lanes: shards of places, dealt over all workers; a place is a record or a user.
        num_units: n, the number of records (or users) of all workers together; public.
        empty: places that never take part, see `without`.

    Shapes: empty (E,) int64.
    """

    unit: ClassVar[str]

    lanes: Tuple[AnyShard, ...]
    num_units: int
    empty: np.ndarray

    @property
    def sampler(self) -> str:
        """Either "shuffle" or "poisson"."""
        return self.lanes[0].sampler

    @property
    def steps_per_epoch(self) -> int:
        """Number of draws per epoch, the same on all workers."""
        return self.lanes[0].steps_per_epoch

    @property
    def sample_rate(self) -> float:
        """Probability with which each place is drawn in a step; 1.0 for shuffle."""
        return self.lanes[0].sample_rate

    @property
    def micro_batch_size(self) -> float:
        """|M|, the public size of a lane, in records, or in users for the unit "user".

        A whole number for shuffle; the expected size, not always whole, for Poisson. It is the same
        divisor whatever was drawn.
        """
        return self.lanes[0].micro_batch_size

    @property
    def micro_batches_per_worker(self) -> int:
        """k, the number of lanes of this worker."""
        return len(self.lanes)

    @property
    def indices(self) -> np.ndarray:
        """The records of this worker, ascending, without those of empty places."""
        return self._present(np.sort(np.concatenate([lane.indices for lane in self.lanes])))

    @abstractmethod
    def draws(self, epoch: int) -> Iterator[Draw]:
        """Yield what this worker clips in each step of an epoch."""

    def without(self: S, places: np.ndarray) -> S:
        """Return the same sampler with empty places.

        Deal, steps, n and divisors are the same, and other places are drawn as before. The record
        of an empty place is left out when it is drawn, and nothing replaces it: a micro-batch is
        smaller, an utterance or a user is missing.

        Args:
            places: (E,) records of any worker; users of any worker for the unit "user".
        """
        return replace(self, empty=np.union1d(self.empty, np.asarray(places, np.int64)))

    def _present(self, places: np.ndarray) -> np.ndarray:
        """Return those of some places that are not empty."""
        return places[~np.isin(places, self.empty)] if len(self.empty) else places


@dataclass(frozen=True, eq=False)
class MicroBatches(Sampler):
    """Algorithm 1 with k micro-batches per worker: the gradient of each is clipped as one.

    Guarantee:
        The records are dealt over the lanes of all workers. Lane number l draws the same
        micro-batches whichever worker has it: 1 worker with 8 lanes, 2 with 4 and 8 with 1 draw the
        same ones in each step (in distribution for Poisson, since its draws are secret).

    Edge cases: a micro-batch may be empty, for Poisson or because of empty places; it still counts.
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
