"""The sizes of a training that is dealt by a sampler, known before any record is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from edp_mx.dp.accounting.choices import check_rate
from edp_mx.errors import UserError


@dataclass(frozen=True)
class Sizes:
    """The public sizes of a training.

    Attributes:
        num_units: n, the records (or users) of the training part; None where only δ is known.
        micro_batch_size: |M|, expected under poisson.
        micro_batches_per_worker: k.
        sample_rate: q; 1 for shuffle.
    """

    num_units: Optional[int]
    micro_batch_size: float
    micro_batches_per_worker: int
    sample_rate: float
    steps_per_epoch: int


def sizes_of(
    sampler: str,
    *,
    batch_size: int,
    num_workers: int,
    micro_batches_per_worker: int = 1,
    num_units: Optional[int] = None,
    sample_rate: Optional[float] = None,
    units: str = "utterances",
) -> Sizes:
    """Return the sizes of a training with a batch of B units over all workers.

    Args:
        num_units: n; without it nothing is known of the steps of a shuffled epoch, which cost the
            same however many they are.
        units: what n counts, in words.
        sample_rate: q of poisson, in place of B / n where n is not known.

    Raises:
        UserError: a batch that its workers cannot share, or that the records cannot fill.
    """
    lanes = num_workers * micro_batches_per_worker
    check_sizes(
        sampler,
        batch_size=batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=micro_batches_per_worker,
        num_units=num_units,
        units=units,
    )
    if sampler == "shuffle":
        size = batch_size // lanes
        steps = 1 if num_units is None else num_units // lanes // size
        return Sizes(num_units, size, micro_batches_per_worker, 1.0, steps)
    if num_units is not None:
        rate, steps = batch_size / num_units, round(num_units / batch_size)
    elif sample_rate:
        check_rate(sample_rate)
        rate, steps = sample_rate, round(1 / sample_rate)
    else:
        raise UserError("poisson sampling needs the number of examples, or a sample rate above 0")
    return Sizes(num_units, batch_size / lanes, micro_batches_per_worker, rate, max(1, steps))


def check_sizes(
    sampler: str,
    *,
    batch_size: int,
    num_workers: int,
    micro_batches_per_worker: int = 1,
    num_units: Optional[int] = None,
    units: str = "utterances",
) -> None:
    """Refuse a batch that the workers cannot share, or that the training part cannot fill."""
    lanes = num_workers * micro_batches_per_worker
    shared = f"{num_workers} workers"
    if micro_batches_per_worker > 1:
        shared += f" with privacy.micro_batches_per_worker: {micro_batches_per_worker}"
    if sampler == "shuffle" and batch_size % lanes:
        raise UserError(
            f"training.batch_size: {batch_size} is not a multiple of {lanes} ({shared})"
        )
    if num_units is not None and not 1 <= batch_size <= num_units:
        raise UserError(
            f"training.batch_size: {batch_size} does not lie between 1 and the {num_units} {units}"
        )
    if num_units is not None and num_units < lanes:
        raise UserError(f"{num_units} {units} are too few for {shared}")
