"""Builds samplers: places are dealt to lanes, and lanes to workers."""

from __future__ import annotations

from functools import partial
from typing import Callable, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.accounting.choices import SAMPLERS, UNITS
from edp_mx.data.draws import MicroBatches, Sampler, Utterances
from edp_mx.data.poisson_sampling import AnyShard, PoissonShard
from edp_mx.data.sampling import Shard
from edp_mx.data.user_draws import Users
from edp_mx.data.users import records_by_user
from edp_mx.errors import UserError


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
        unit: what is clipped as one: "micro_batch", "utterance" or "user".
        sampler: "shuffle" or "poisson".
        batch_size: B, over all workers, in records, or in users for the unit "user"; the expected
            number for Poisson.
        seed: seed of the deal and the shuffle, the same on all workers, ≥ 0.
        micro_batches_per_worker: k; must be 1 unless the unit is "micro_batch".
        users: the user of each record, see `users.users_of`; needed only for the unit "user".
        max_utterances_per_user: K; needed for the unit "user", ignored for others.
        length_buckets, lengths, adjacency: see `Shard.deal`; not for Poisson.
        insecure_fixed_seed: makes draws and choices repeatable, hence no secret; for tests only.

    Raises:
        UserError: these settings cannot be dealt; the sentence names the key.

    Shapes: users (num_records,) whole numbers from 0; lengths (num_records,).
    """
    _refuse_unknown(unit, sampler, micro_batches_per_worker, rank, num_workers)
    places = num_records
    if unit == "user":
        by_user = _by_user(num_records, users, max_utterances_per_user, length_buckets)
        places = len(by_user[1]) - 1
    _refuse_sizes(unit, sampler, places, batch_size, num_workers, micro_batches_per_worker)
    kind: Callable[..., AnyShard] = partial(
        Shard.deal, length_buckets=length_buckets, lengths=lengths, adjacency=adjacency
    )
    if sampler == "poisson":
        _refuse_length_buckets(length_buckets)
        kind = partial(PoissonShard.deal, insecure_fixed_seed=insecure_fixed_seed)
    first, total = rank * micro_batches_per_worker, num_workers * micro_batches_per_worker
    settings = {"batch_size": batch_size, "num_workers": total, "seed": seed}
    lanes = range(first, first + micro_batches_per_worker)
    shards = tuple(kind(places, rank=lane, **settings) for lane in lanes)
    common = (shards, places, np.empty(0, np.int64))
    if unit == "user":
        return Users(*common, *by_user, rank, insecure_fixed_seed)
    return MicroBatches(*common) if unit == "micro_batch" else Utterances(*common)


def _refuse_unknown(
    unit: str, sampler: str, micro_batches_per_worker: int, rank: int, num_workers: int
) -> None:
    """Refuse unknown names, and an impossible rank or number of lanes."""
    for key, value, known in (("unit", unit, UNITS), ("sampler", sampler, SAMPLERS)):
        if value not in known:
            raise UserError(f"privacy.{key}: {value!r} is none of {', '.join(known)}")
    if micro_batches_per_worker < 1:
        raise UserError(
            f"privacy.micro_batches_per_worker must be ≥ 1, not {micro_batches_per_worker}"
        )
    if unit != "micro_batch" and micro_batches_per_worker != 1:
        raise UserError(
            f"privacy.micro_batches_per_worker: {micro_batches_per_worker} needs privacy.unit: "
            f"micro_batch; with {unit} each {unit} is clipped by itself, so set it to 1"
        )
    if not 0 <= rank < num_workers:
        raise UserError(f"rank {rank} is none of {num_workers} workers")


def _refuse_length_buckets(length_buckets: int) -> None:
    """Refuse buckets under Poisson, where each record must be drawn independently."""
    if length_buckets:
        raise UserError(
            f"training.length_buckets: {length_buckets} buckets and privacy.sampler: poisson "
            "exclude each other; set length_buckets to 0"
        )


def _by_user(
    num_records: int, users: Optional[np.ndarray], most: Optional[int], length_buckets: int
) -> Tuple[np.ndarray, np.ndarray, int]:
    """Return what `Users` needs: the records of each user, and K."""
    if most is None or most < 1:
        raise UserError(f"privacy.max_utterances_per_user must be ≥ 1, not {most}")
    if length_buckets:
        raise UserError(
            f"training.length_buckets: {length_buckets} buckets group utterances by length, but "
            "privacy.unit: user draws users; set length_buckets to 0"
        )
    if users is None or len(users) != num_records:
        raise ValueError(f"the unit user needs the user of each of the {num_records} records")
    return (*records_by_user(users), most)


def _refuse_sizes(
    unit: str,
    sampler: str,
    places: int,
    batch_size: int,
    num_workers: int,
    micro_batches_per_worker: int,
) -> None:
    """Refuse a batch that cannot be shared by the workers, or is larger than the corpus."""
    total = num_workers * micro_batches_per_worker
    shared = f"{num_workers} workers"
    if unit == "micro_batch":
        shared += f" with privacy.micro_batches_per_worker: {micro_batches_per_worker}"
    if sampler == "shuffle" and batch_size % total:
        raise UserError(
            f"training.batch_size: {batch_size} is not a multiple of {total} ({shared})"
        )
    what = "users" if unit == "user" else "utterances"
    if not 1 <= batch_size <= places:
        raise UserError(
            f"training.batch_size: {batch_size} does not lie between 1 and the {places} {what}"
        )
    if places < total:
        raise UserError(f"{places} {what} are too few for {shared}")
