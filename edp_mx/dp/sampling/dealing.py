"""Builds samplers: places are dealt to lanes, and lanes to workers."""

from __future__ import annotations

from functools import partial
from typing import Callable, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.dp.accounting.choices import SAMPLERS, UNITS
from edp_mx.dp.accounting.samplers import check_sizes
from edp_mx.dp.sampling.draws import MicroBatches, Sampler, Users, Utterances
from edp_mx.dp.sampling.poisson import AnyShard, PoissonShard
from edp_mx.dp.sampling.shuffle import Shard
from edp_mx.errors import UserError

Complaints = Iterator[Tuple[bool, str]]  # what is wrong if the first is true


def deal(
    *,
    unit: str,
    sampler: str,
    num_records: int,
    batch_size: int,
    rank: int,
    num_workers: int,
    seed: int,
    micro_batches_per_worker: int = 1,
    users: Optional[np.ndarray] = None,
    max_utterances_per_user: Optional[int] = None,
    length_buckets: int = 0,
    lengths: Union[Sequence[int], np.ndarray, None] = None,
    adjacency: str = "replace_one",
    insecure_fixed_seed: Optional[int] = None,
) -> Sampler:
    """Deal records or users to the workers; each worker calls this with its own rank.

    Args:
        batch_size: B, over all workers, in records, or in users for the unit "user"; the expected
            number for Poisson.
        seed: seed of the deal and the shuffle, the same on all workers, ≥ 0.
        micro_batches_per_worker: k; must be 1 unless the unit is "micro_batch".
        users: (num_records,), the user's number; needed, as is K, for the unit "user" alone.
        max_utterances_per_user: K.
        length_buckets: see `Shard.deal`; not for Poisson.
        lengths: see `Shard.deal`; not for Poisson.
        adjacency: see `Shard.deal`; not for Poisson.
        insecure_fixed_seed: makes draws and choices repeatable, hence no secret; for tests only.

    Raises:
        UserError: these settings cannot be dealt; the sentence names the key.
    """
    lanes, places, most = micro_batches_per_worker, num_records, max_utterances_per_user or 0
    if unit == "user":
        if users is None or len(users) != num_records:
            raise ValueError(f"the unit user needs the user of each of the {num_records} records")
        by_user = records_by_user(users)
        places = len(by_user[1]) - 1
    for is_wrong, complaint in _settings(unit, sampler, lanes, most, length_buckets):
        if is_wrong:
            raise UserError(complaint)
    if not 0 <= rank < num_workers:
        raise UserError(f"rank {rank} is not one of {num_workers} workers")
    check_sizes(
        sampler,
        batch_size=batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=lanes,
        num_units=places,
        units="users" if unit == "user" else "utterances",
    )
    kind: Callable[..., AnyShard] = partial(
        Shard.deal, length_buckets=length_buckets, lengths=lengths, adjacency=adjacency
    )
    if sampler == "poisson":
        kind = partial(PoissonShard.deal, insecure_fixed_seed=insecure_fixed_seed)
    settings = {"batch_size": batch_size, "num_workers": num_workers * lanes, "seed": seed}
    shards = tuple(kind(places, rank=rank * lanes + lane, **settings) for lane in range(lanes))
    common = (shards, places, np.empty(0, np.int64))
    if unit == "user":
        return Users(*common, *by_user, most, rank, insecure_fixed_seed)
    return MicroBatches(*common) if unit == "micro_batch" else Utterances(*common)


def records_by_user(users: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return the records of each user, one user after the other, and where those of each begin.

    User u has `records[offsets[u] : offsets[u + 1]]`, ascending.

    Shapes: users (R,), records (R,) int32 where that suffices, offsets (users + 1,) int64.
    """
    kind = np.int32 if len(users) <= np.iinfo(np.int32).max else np.int64
    records = np.argsort(users, kind="stable").astype(kind)
    return records, np.concatenate([[0], np.cumsum(np.bincount(users))]).astype(np.int64)


def _settings(unit: str, sampler: str, lanes: int, most: int, buckets: int) -> Complaints:
    """Yield what may be wrong with settings that exclude each other."""
    for key, value, known in (("unit", unit, UNITS), ("sampler", sampler, SAMPLERS)):
        yield value not in known, f"privacy.{key} must be one of {', '.join(known)}, not {value!r}"
    yield lanes < 1, f"privacy.micro_batches_per_worker must be ≥ 1, not {lanes}"
    yield (
        unit != "micro_batch" and lanes != 1,
        f"privacy.micro_batches_per_worker: {lanes} needs privacy.unit: micro_batch; with {unit} "
        f"each {unit} is clipped by itself, so set it to 1",
    )
    yield unit == "user" and most < 1, f"privacy.max_utterances_per_user must be ≥ 1, not {most}"
    draws = "unit: user draws users" if unit == "user" else "sampler: poisson draws each by itself"
    yield (
        bool(buckets) and (unit == "user" or sampler == "poisson"),
        f"training.length_buckets: {buckets} buckets group utterances by length, but "
        f"privacy.{draws}; set length_buckets to 0",
    )
