"""The shuffling sampler: which records a worker sees in which step of an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Iterator, List, Sequence, Tuple, Union

import numpy as np

from edp_mx.errors import UserError

# Uses of one seed that must not share random numbers.
_DEAL, _VISIT, _SHUFFLE = 0, 1, 2


def micro_batch_size(batch_size: int, num_workers: int) -> int:
    """M = B / N.

    Raises:
        UserError: B is not a multiple of N.

    Example:
        >>> micro_batch_size(64, 8)
        8
    """
    if batch_size < 1 or num_workers < 1 or batch_size % num_workers:
        raise UserError(
            f"training.batch_size: {batch_size} is not a multiple of the {num_workers} workers"
        )
    return batch_size // num_workers


def steps_per_epoch(num_records: int, batch_size: int, num_workers: int) -> int:
    """Steps of an epoch, the same on all workers, without repeating a record.

    Raises:
        UserError: the smallest shard holds less than one micro-batch.

    Example:
        >>> steps_per_epoch(100, 16, 8)  # shards of 12 or 13, micro-batches of 2
        6
    """
    smallest_shard = num_records // num_workers
    steps = smallest_shard // micro_batch_size(batch_size, num_workers)
    if steps == 0:
        raise UserError(
            f"training.batch_size: {batch_size} is too large, since the smallest of {num_workers} "
            f"shards of {num_records} records holds {smallest_shard}"
        )
    return steps


@dataclass(frozen=True, eq=False)
class Shard:
    """One worker's fixed part of the training records, and its shuffle in each epoch.

    Guarantee:
        Shards are disjoint, cover all records and differ in size by at most one. In an epoch every
        worker yields the same number of micro-batches of exactly `micro_batch_size` records, and
        no record more than once. The order depends on (seed, epoch, rank) and the number of
        records alone; with length buckets on the records' lengths too, which must be public.

    Shapes: `buckets` holds vectors of record indices, one without length buckets; they are int32
    where that suffices, so that an epoch takes eight bytes a record. `bucket_steps` is the number
    of micro-batches that each gives in an epoch.
    """

    sampler: ClassVar[str] = "shuffle"
    sample_rate: ClassVar[float] = 1.0  # no rate below 1 may be claimed: nothing is drawn by chance

    buckets: Tuple[np.ndarray, ...]
    bucket_steps: Tuple[int, ...]
    micro_batch_size: int
    seed: int
    rank: int

    @classmethod
    def deal(
        cls,
        num_records: int,
        *,
        batch_size: int,
        num_workers: int,
        rank: int,
        seed: int,
        length_buckets: int = 0,
        lengths: Union[Sequence[int], np.ndarray, None] = None,
        adjacency: str = "replace_one",
    ) -> Shard:
        """Deals the records out to the workers; each worker calls this with its own rank.

        Args:
            seed: the same on all workers, ≥ 0.
            length_buckets: into how many classes of similar length records are sorted (0: none).
                Saves padding. Each class needs at least a batch.
            lengths: of the records, needed with `length_buckets`; they count as public.
            adjacency: "zero_out" or "replace_one".

        Raises:
            UserError: too few records, or length buckets under replace-one, where a replaced
                record may move every other record to another batch.
        """
        steps_per_epoch(num_records, batch_size, num_workers)  # refuses what cannot be dealt
        classes = _length_classes(num_records, length_buckets, lengths, adjacency)
        size = micro_batch_size(batch_size, num_workers)
        shares = shares_of(classes, num_workers=num_workers, rank=rank, seed=seed)
        steps = [len(records) // num_workers // size for records in classes]
        if min(steps) == 0:
            raise UserError(
                f"training.length_buckets: {length_buckets} is too many, since one of them holds "
                f"less than a batch of {batch_size} records"
            )
        return cls(tuple(shares), tuple(steps), size, seed, rank)

    @property
    def indices(self) -> np.ndarray:
        """All records of this shard, ascending."""
        return np.sort(np.concatenate(self.buckets))

    @property
    def steps_per_epoch(self) -> int:
        """Micro-batches of an epoch, the same on all workers."""
        return sum(self.bucket_steps)

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """The micro-batches of an epoch, each (M,) int64.

        Which records are left over is drawn anew each epoch. With length buckets all workers visit
        the same bucket in the same step.
        """
        shuffle = _generator(self.seed, _SHUFFLE, epoch, self.rank)
        orders = [shuffle.permutation(bucket) for bucket in self.buckets]
        visits = np.repeat(np.arange(len(orders)), self.bucket_steps)
        used = [0] * len(orders)
        for bucket in _generator(self.seed, _VISIT, epoch).permutation(visits):
            start = used[bucket] * self.micro_batch_size
            used[bucket] += 1
            drawn = orders[bucket][start : start + self.micro_batch_size]
            yield drawn.astype(np.int64)


def shares_of(
    classes: Sequence[np.ndarray], *, num_workers: int, rank: int, seed: int
) -> List[np.ndarray]:
    """One worker's fixed share of each class of records, dealt out by (seed, number of records).

    The shares of all workers are disjoint, cover all records and differ in size by at most one.

    Raises:
        UserError: there is no such rank.
    """
    if not 0 <= rank < num_workers:
        raise UserError(f"rank {rank} is none of {num_workers} workers")
    generator = _generator(seed, _DEAL)
    shares: List[np.ndarray] = []
    dealt = 0
    for records in classes:
        # Dealing goes on where the last class ended, so that shards differ by one at most.
        first = (rank - dealt) % num_workers
        # A copy where it is a part, which does not keep the rest in memory.
        shares.append(np.ascontiguousarray(generator.permutation(records)[first::num_workers]))
        dealt += len(records)
    return shares


def _length_classes(
    num_records: int,
    length_buckets: int,
    lengths: Union[Sequence[int], np.ndarray, None],
    adjacency: str,
) -> List[np.ndarray]:
    """Record indices by class of length; one class without length buckets."""
    if adjacency not in ("zero_out", "replace_one"):
        raise UserError(f"privacy.adjacency: {adjacency!r} is neither zero_out nor replace_one")
    if length_buckets < 0:
        raise UserError(f"training.length_buckets must be ≥ 0, not {length_buckets}")
    records = numbers_below(num_records)
    if length_buckets == 0:
        return [records]
    if adjacency != "zero_out":
        raise UserError(
            "training.length_buckets: buckets by length are valid only under privacy.adjacency: "
            "zero_out with public lengths; set length_buckets to 0"
        )
    if lengths is None or len(lengths) != num_records:
        raise UserError("training.length_buckets needs the length of each record")
    inner = np.arange(1, length_buckets) / length_buckets
    edges = np.unique(np.quantile(lengths, inner)) if len(inner) else np.array([])
    classes = np.searchsorted(edges, lengths, side="right")  # a function of the length alone
    return [records[classes == c] for c in np.unique(classes)]


def numbers_below(end: int) -> np.ndarray:
    """0, 1, …, end − 1, (end,) int32 where that suffices; a permutation draws the same of both."""
    return np.arange(end, dtype=np.int32 if end <= np.iinfo(np.int32).max else np.int64)


def _generator(seed: int, *key: int) -> np.random.Generator:
    """A stream of its own for each use, epoch and rank."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
