"""The Poisson sampler: every record of a shard is in each step with the same probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Iterator, Optional, Union

import numpy as np

from edp_mx.data.sampling import Shard, numbers_below, shares_of
from edp_mx.data.secret_words import SecretWords
from edp_mx.errors import UserError

_AT_ONCE = 1 << 16  # records that are decided together


@dataclass(frozen=True, eq=False)
class PoissonShard:
    """One worker's fixed part of the training records, and what it draws from it in each step.

    Attributes:
        indices: the records of this shard, ascending.
        num_records: n, of all shards together; public.
        batch_size: B, how many records all workers together draw in a step on average.
        num_workers: N.
        rank: of this worker.
        insecure_fixed_seed: repeatable draws, for tests: no amplification by sampling at all.

    Guarantee:
        Shards are disjoint and cover all records; who is in which is fixed, and depends on the seed
        and n alone. In each step each record is drawn with probability q = `sample_rate`,
        independently of all other records, workers, steps and epochs. A draw decides with 64
        random bits, so that its probability is q rounded down by less than 2⁻⁶⁴.

        The analysis takes the draws as secret: whoever knows them is left with no amplification.
        They come from AES-256 in counter mode under a key of the operating system, another one for
        each worker, each epoch and each start, which is never written down. What `training.seed`
        fixes (and a run directory shows) is only the deal. Sizes that were drawn are as secret:
        nothing may be divided by them, and they are not written down either.

    Shapes: indices (S,), int32 where that suffices.

    Edge cases:
        A micro-batch may be empty. It may also be larger than expected: its size has mean M and
        standard deviation below √M, hence above M + 6√M + 6 less than once in a million steps. No
        chunks are made of it: for large M that is little more than M, for small M it is little.
        n and B fix q, the steps and the deal: a neighbouring corpus has the same n, its record's
        place being empty (zero_out) or taken by another (replace_one).

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
        length_buckets: int = 0,
        insecure_fixed_seed: Optional[int] = None,
    ) -> PoissonShard:
        """Deals the records out to the workers; each worker calls this with its own rank.

        Args:
            batch_size: the expected one, over all workers; it need not be a multiple of theirs.
            seed: of the deal, the same on all workers, ≥ 0. It says nothing of what is drawn.
            length_buckets: only 0; here so that it is refused and not forgotten.
            insecure_fixed_seed: for tests only, see the class.

        Raises:
            UserError: more records a batch than there are, fewer records than workers, or length
                buckets, in which records would not be drawn independently.
        """
        if not 1 <= batch_size <= num_records:
            raise UserError(
                f"training.batch_size: {batch_size} does not lie between 1 and the {num_records} "
                "records"
            )
        if num_records < num_workers:
            raise UserError(f"{num_records} records are too few for {num_workers} workers")
        if length_buckets:
            raise UserError(
                f"training.length_buckets: {length_buckets} buckets and privacy.sampler: poisson "
                "exclude each other; set length_buckets to 0"
            )
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
        """M = B / N, how many records a worker draws on average; not always whole.

        All workers divide by it, though a shard may be one record larger than another.
        """
        return self.batch_size / self.num_workers

    @property
    def steps_per_epoch(self) -> int:
        """1 / q to the nearest whole number (a half to the even one), the same on all workers.

        So that a record is drawn about once an epoch.
        """
        return max(1, round(self.num_records / self.batch_size))

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """The micro-batches of an epoch, each int64 of its own length, which may be 0.

        Every call draws anew, also for an epoch that was drawn before.
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
