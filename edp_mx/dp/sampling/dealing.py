"""Builds samplers: places are dealt to lanes, and lanes to workers."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.dp.accounting.samplers import SAMPLERS, sizes_of
from edp_mx.dp.accounting.units import UNITS
from edp_mx.dp.sampling.draws import MicroBatches, Sampler, Users, Utterances
from edp_mx.dp.sampling.poisson import AnyShard, PoissonShard
from edp_mx.dp.sampling.shuffle import Shard
from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.runtime.distributed import Workers

COMPARED = 64  # examples whose labels the workers compare


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
    steps_per_epoch: Optional[int] = None,
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
        steps_per_epoch: for Poisson alone; about n / B if left out.
        length_buckets: see `Shard.deal`; not for Poisson.
        lengths: see `Shard.deal`; not for Poisson.
        adjacency: see `Shard.deal`; not for Poisson.
        insecure_fixed_seed: makes draws and choices repeatable, hence no secret; for tests only.

    Raises:
        UserError: these settings cannot be dealt; the sentence names the key.
    """
    lanes, places, most = micro_batches_per_worker, num_records, max_utterances_per_user or 0
    if UNITS[unit].is_user:
        if users is None or len(users) != num_records:
            raise ValueError(f"the unit user needs the user of each of the {num_records} records")
        if most < 1:
            raise UserError(f"privacy.max_utterances_per_user must be ≥ 1, not {most}")
        by_user = records_by_user(users)
        places = len(by_user[1]) - 1
    _refuse_buckets(unit, sampler, length_buckets)
    if not 0 <= rank < num_workers:
        raise UserError(f"rank {rank} is not one of {num_workers} workers")
    sizes = sizes_of(
        sampler,
        batch_size=batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=lanes,
        num_units=places,
        steps_per_epoch=steps_per_epoch,
        units=f"{UNITS[unit].record}s",
    )
    kinds: Dict[str, Callable[..., AnyShard]] = {
        "shuffle": partial(
            Shard.deal, length_buckets=length_buckets, lengths=lengths, adjacency=adjacency
        ),
        "poisson": partial(
            PoissonShard.deal,
            steps_per_epoch=sizes.steps_per_epoch,
            insecure_fixed_seed=insecure_fixed_seed,
        ),
    }
    settings = {"batch_size": batch_size, "num_workers": num_workers * lanes, "seed": seed}
    shards = tuple(
        kinds[sampler](places, rank=rank * lanes + lane, **settings) for lane in range(lanes)
    )
    common = (shards, places, np.empty(0, np.int64))
    if UNITS[unit].is_user:
        return Users(*common, *by_user, most, rank, insecure_fixed_seed)
    return MicroBatches(*common) if UNITS[unit].is_mean else Utterances(*common)


def records_by_user(users: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return the records of each user, one user after the other, and where those of each begin.

    User u has `records[offsets[u] : offsets[u + 1]]`, ascending.

    Shapes: users (R,), records (R,) int32 where that suffices, offsets (users + 1,) int64.
    """
    kind = np.int32 if len(users) <= np.iinfo(np.int32).max else np.int64
    records = np.argsort(users, kind="stable").astype(kind)
    return records, np.concatenate([[0], np.cumsum(np.bincount(users))]).astype(np.int64)


def _refuse_buckets(unit: str, sampler: str, buckets: int) -> None:
    """Refuse batches by length where chance, or a user, decides who is in one."""
    if not buckets or not (UNITS[unit].is_user or SAMPLERS[sampler].by_chance):
        return
    draws = f"sampler: {sampler} draws each by itself"
    if UNITS[unit].is_user:
        draws = f"unit: {unit} draws {unit}s"
    raise UserError(
        f"training.length_buckets: {buckets} buckets group utterances by length, but "
        f"privacy.{draws}; set length_buckets to 0"
    )


def refuse_other_deal(
    workers: Workers,
    batch_of: Callable[[np.ndarray], Tuple[int, Sequence[Any]]],
    num_records: int,
    seed: int,
    users: Optional[np.ndarray],
) -> None:
    """Refuse workers with other examples, or in another order: two might draw the same example.

    Labels of some examples are compared; the other arrays may be augmented at random.

    Shapes: users (n,).
    """
    if workers.size == 1:
        return
    places = np.linspace(0, num_records - 1, COMPARED).round()
    digest = hashlib.sha256(b"" if users is None else users.tobytes())
    for record in np.unique(places.astype(np.int64)):
        digest.update(batch_of(np.array([record]))[1][-1].asnumpy().tobytes())
    found = (seed, num_records, digest.hexdigest()[:16])
    workers.agree("the seed, or the examples, their order and their users", found)
