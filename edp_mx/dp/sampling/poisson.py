"""The Poisson sampler, which draws each record with the same probability, and its secret words."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import ClassVar, Iterator, Optional, Union

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from edp_mx.dp.sampling.shuffle import Shard, numbers_below, shares_of
from edp_mx.runtime.processes import forbid_core_dumps

_AT_ONCE = 1 << 16  # records whose draws are decided together


class SecretWords:
    """A stream of 64-bit words: AES-256 in counter mode under a key of the operating system.

    Args:
        insecure_fixed_seed: makes the words repeatable, hence no secret; for tests only.
        use: only repeatable words depend on them.
        rank: only repeatable words depend on them.
        epoch: only repeatable words depend on them.

    Guarantee: each stream has a new key, which is never written down; a process that has made one
        leaves no core dump.
    """

    def __init__(
        self, use: str, *, insecure_fixed_seed: Optional[int], rank: int, epoch: int
    ) -> None:
        forbid_core_dumps()
        key = os.urandom(32)  # of AES-256
        if insecure_fixed_seed is not None:
            place = f"edp_mx insecure {use} {insecure_fixed_seed} {rank} {epoch}"
            key = hashlib.sha256(place.encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = b""

    def next(self, count: int) -> np.ndarray:
        """Return the next words, (count,) uint64."""
        if len(self._zeros) < 8 * count:
            self._zeros = bytes(8 * count)
        return np.frombuffer(self._stream.update(memoryview(self._zeros)[: 8 * count]), "<u8")


@dataclass(frozen=True, eq=False)
class PoissonShard:
    """One worker's fixed part of the training records, and its Poisson draws in each step.

    Attributes:
        indices: (S,), the records of this shard, ascending, int32 if that suffices.
        num_records: n, of all shards together; public.
        batch_size: B, the expected number of records that all workers together draw in a step.
        steps_per_epoch: with 1 / q, each record is drawn about once per epoch.
        insecure_fixed_seed: makes the draws repeatable, hence no amplification; for tests only.

    Guarantee: shards are disjoint and cover all records; they are fixed, and depend only on the
        seed and n. In each step each record is drawn with probability q = `sample_rate`,
        independently of all other records, workers, steps and epochs. A draw takes 64 random bits,
        so that its probability is q rounded down by less than 2⁻⁶⁴. The draws, and so their sizes,
        must stay secret, since an adversary who knows them sees no amplification: they come from
        `SecretWords`, not from `training.seed`, and nothing may be divided by their sizes, which
        are not written down.

    Edge cases: a micro-batch may be empty, or larger than expected: its size exceeds M + 6√M + 6
        less than once in a million steps. n and B fix q, the steps and the deal: a neighbouring
        corpus has the same n; its record's place is empty (zero_out) or taken by another
        (replace_one).

    Source: docs/privacy.md, section 4.
    """

    sampler: ClassVar[str] = "poisson"

    indices: np.ndarray
    num_records: int
    batch_size: int
    num_workers: int
    rank: int
    steps_per_epoch: int
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
        steps_per_epoch: int,
        insecure_fixed_seed: Optional[int] = None,
    ) -> PoissonShard:
        """Return the shard of one worker; called by `dealing.deal`, which checks the sizes."""
        (share,) = shares_of(
            [numbers_below(num_records)], num_workers=num_workers, rank=rank, seed=seed
        )
        sizes = num_records, batch_size, num_workers, rank, steps_per_epoch
        return cls(np.sort(share), *sizes, insecure_fixed_seed)

    @property
    def sample_rate(self) -> float:
        """q = B / n."""
        return self.batch_size / self.num_records

    @property
    def micro_batch_size(self) -> float:
        """M = B / N, by which all workers divide, though shards may differ in size by a record."""
        return self.batch_size / self.num_workers

    def micro_batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield newly drawn micro-batches of an epoch, each int64; some may be empty."""
        words = SecretWords(
            "sampling", insecure_fixed_seed=self.insecure_fixed_seed, rank=self.rank, epoch=epoch
        )
        # In whole numbers of Python: those of NumPy would be shifted to 0, and draw everyone.
        largest = np.uint64((int(self.batch_size) << 64) // int(self.num_records) - 1)
        for _ in range(self.steps_per_epoch):
            drawn = [np.empty(0, np.int64)]
            for first in range(0, len(self.indices), _AT_ONCE):
                some = self.indices[first : first + _AT_ONCE]  # (n,)
                drawn.append(some[words.next(len(some)) <= largest].astype(np.int64))
            yield np.concatenate(drawn)


AnyShard = Union[Shard, PoissonShard]
