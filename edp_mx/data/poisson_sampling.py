"""The Poisson sampler: every record of a shard is in each step with the same probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Iterator, Optional, Union

import numpy as np

from edp_mx.data.sampling import Shard, numbers_below, shares_of
from edp_mx.data.secret_words import SecretWords

_AT_ONCE = 1 << 16  # records whose draws are decided together


@dataclass(frozen=True, eq=False)
class PoissonShard:
    """One worker's fixed part of the training records, and its Poisson draws in each step.

    Attributes:
        indices: the records of this shard, ascending.
        num_records: n, of all shards together; public.
        batch_size: B, the expected number of records that all workers together draw in a step.
        num_workers: N.
        rank: the rank of this worker.
        insecure_fixed_seed: makes the draws repeatable, hence no amplification; for tests only.

    Guarantee:
        Shards are disjoint and cover all records; they are fixed, and depend only on the seed and
        n. In each step each record is drawn with probability q = `sample_rate`, independently of
        all other records, workers, steps and epochs. A draw takes 64 random bits, so that its
        probability is q rounded down by less than 2⁻⁶⁴.

        The analysis takes the draws as secret: against an adversary who knows them there is no
        amplification. They come from AES-256 in counter mode under a key of the operating system,
        a new one per worker, epoch and start, which is never written down. `training.seed` (which a
        run directory shows) fixes only the deal. The sizes of draws are as secret: nothing may be
        divided by them, and they are not written down either.

    Shapes: indices (S,), int32 if that suffices.

    Edge cases:
        A micro-batch may be empty. It may also be larger than expected: its size has mean M and
        standard deviation below √M, hence exceeds M + 6√M + 6 less than once in a million steps. It
        is not split: for large M that is little more than M, and for small M it is little.
        n and B fix q, the steps and the deal: a neighbouring corpus has the same n; its record's
        place is empty (zero_out) or taken by another (replace_one).

    Source: docs/privacy.md, section 4.

    Example:
        >>> shard = PoissonShard.deal(1000, batch_size=12, num_workers=8, rank=0, seed=0)
        >>> shard.sample_rate, shard.steps_per_epoch, shard.micro_batch_size, len(shard.indices)
        (0.012, 83, 1.5, 125)
    """

    sampler: ClassVar[str] = "poisson"

    indices: np.ndarray
    num_records: int
    batch_size: int
    num_workers: int
    rank: int
    insecure_fixed_seed: Optional[int] = None

    @classmethod
    def deal(
        cls,
        num_records: int,
        *,
        batch_size: int,
        num_workers: int,
        rank: int,
        seed: int,
        insecure_fixed_seed: Optional[int] = None,
    ) -> PoissonShard:
        """Return the shard of one worker; called by `dealing.deal`, which checks the sizes.

        Args:
            batch_size: the expected one over all workers; not necessarily a multiple of theirs.
            seed: seed of the deal, the same on all workers, ≥ 0; it does not decide the draws.
            insecure_fixed_seed: for tests only, see the class.
        """
        (share,) = shares_of(
            [numbers_below(num_records)], num_workers=num_workers, rank=rank, seed=seed
        )
        return cls(np.sort(share), num_records, batch_size, num_workers, rank, insecure_fixed_seed)

    @property
    def sample_rate(self) -> float:
        """q = B / n."""
        return self.batch_size / self.num_records

    @property
    def micro_batch_size(self) -> float:
        """M = B / N, the expected number of records that a worker draws; not always whole.

        All workers divide by it, though shards may differ in size by one record.
        """
        return self.batch_size / self.num_workers

    @property
    def steps_per_epoch(self) -> int:
        """1 / q, rounded (a half to even), so that a record is drawn about once per epoch."""
        return max(1, round(self.num_records / self.batch_size))

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the micro-batches of an epoch, each int64 of its own length, which may be 0.

        Every call draws anew, even for an epoch that was drawn before.
        """
        words = SecretWords(
            "sampling", insecure_fixed_seed=self.insecure_fixed_seed, rank=self.rank, epoch=epoch
        )
        largest = np.uint64((self.batch_size << 64) // self.num_records - 1)
        for _ in range(self.steps_per_epoch):
            drawn = [np.empty(0, np.int64)]
            for first in range(0, len(self.indices), _AT_ONCE):
                some = self.indices[first : first + _AT_ONCE]  # (n,)
                drawn.append(some[words.next(len(some)) <= largest].astype(np.int64))
            yield np.concatenate(drawn)


AnyShard = Union[Shard, PoissonShard]
