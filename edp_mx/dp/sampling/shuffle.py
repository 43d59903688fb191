"""The shuffling sampler: which records a worker sees in which step of an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Iterator, List, Sequence, Tuple, Union

import numpy as np

from edp_mx.errors import UserError

# Uses of one seed that must not share random numbers.
_DEAL, _VISIT, _SHUFFLE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Shard:
    """One worker's fixed part of the training records, and its shuffle in each epoch.

    Attributes:
        buckets: vectors of record indices, int32 if that suffices; one without length buckets.
        bucket_steps: the number of micro-batches per epoch of each bucket.

    Guarantee: shards are disjoint, cover all records and differ in size by at most one. In an epoch
        every worker yields the same number of micro-batches of exactly `micro_batch_size` records,
        and no record more than once. The order depends only on (seed, epoch, rank) and the number
        of records; with length buckets also on the records' lengths, which must be public.
    """

    sampler: ClassVar[str] = "shuffle"
    sample_rate: ClassVar[float] = 1.0  # no lower rate may be claimed: no chance is involved

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
        """Return the shard of one worker; called by `dealing.deal`, which checks the sizes.

        Args:
            length_buckets: number of classes of similar length that the records are sorted into, to
                save padding (0: none). Each class needs at least a batch.
            lengths: of the records, needed with `length_buckets`; they count as public.
            adjacency: "zero_out" or "replace_one".

        Raises:
            UserError: too many length buckets; or length buckets under replace_one, where a
                replaced record may move every other record to another batch.
        """
        classes = _length_classes(num_records, length_buckets, lengths, adjacency)
        size = batch_size // num_workers
        shares = shares_of(classes, num_workers=num_workers, rank=rank, seed=seed)
        steps = [len(records) // num_workers // size for records in classes]
        if min(steps) == 0:
            few = f"since one of them holds less than a batch of {batch_size} records"
            raise UserError(f"training.length_buckets: {length_buckets} is too many, {few}")
        return cls(tuple(shares), tuple(steps), size, seed, rank)

    @property
    def indices(self) -> np.ndarray:
        return np.sort(np.concatenate(self.buckets))

    @property
    def steps_per_epoch(self) -> int:
        return sum(self.bucket_steps)

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the micro-batches of an epoch, each (M,) int64; what is left over differs by epoch.

        With length buckets all workers visit the same bucket in the same step.
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
    """Return one worker's fixed share of each class of records, dealt by (seed, number of records).

    The shares of all workers are disjoint, cover all records and differ in size by at most one.
    """
    generator = _generator(seed, _DEAL)
    shares: List[np.ndarray] = []
    dealt = 0
    for records in classes:
        # Dealing continues where the last class ended, so that shards differ by at most one.
        first = (rank - dealt) % num_workers
        # A copy of a part, so that the rest does not stay in memory.
        shares.append(np.ascontiguousarray(generator.permutation(records)[first::num_workers]))
        dealt += len(records)
    return shares


def _length_classes(
    num_records: int,
    length_buckets: int,
    lengths: Union[Sequence[int], np.ndarray, None],
    adjacency: str,
) -> List[np.ndarray]:
    """Return record indices by class of length; one class without length buckets."""
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
    """Return 0, 1, …, end − 1, int32 if that suffices; both types are permuted alike."""
    return np.arange(end, dtype=np.int32 if end <= np.iinfo(np.int32).max else np.int64)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
