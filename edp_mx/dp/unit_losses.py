"""From the draws of a sampler to the losses of units, which a clipping differentiates."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterator, List, Optional, Sequence

import mxnet as mx
import numpy as np

from edp_mx.dp.accounting.units import UNITS
from edp_mx.dp.privacy.clipping import Losses
from edp_mx.dp.privacy.mechanism import AnyMechanism
from edp_mx.dp.sampling.draws import Draw, Sampler


@dataclass(frozen=True, eq=False)
class UnitBatch:
    """The rows of some units, ready for the model.

    Attributes:
        batch: of all rows, R, as the network takes them; those of one unit follow one another.
        records: (R,), the records of the rows.
        num_units: U; each has R / U rows.
        weights: (R,), 0 for rows that only fill a unit up, else 1; None if all count.
        first: the number of the first unit in its draw.
    """

    batch: Any
    records: np.ndarray
    num_units: int
    weights: Optional[np.ndarray]
    first: int


@dataclass(frozen=True, eq=False)
class PrivateBatch:
    """The records that a worker clips in a step; `is_last` of its epoch. Their number is secret."""

    chunks: Sequence[UnitBatch]
    epoch: int
    step: int
    is_last: bool


class UnitLosses:
    """The losses of the units of each step, in chunks as the mechanism's clipping takes them.

    The loss of a micro-batch is the sum over its records, divided by its public size |M|, never by
    how many were drawn: that divisor would change with a record. The loss of an utterance is its
    own, that of a user the sum over their utterances.

    Args:
        loss_of: computes the losses (R,) of a batch, one per row.
        batch_of: makes the batch of some records (R,).
        lengths: (records,), by which rows of similar length share a chunk.
        sampler: whose draws are given; says what a unit is, and |M|.
        mechanism: says how large a chunk may be, and has the secret key of dropout's masks.
        factor: by which all losses are multiplied.
        seed: of the masks of micro-batches.

    Guarantee: what a unit's loss depends on besides the weights and its own records is its mask.
        One micro-batch at a time (loop), the masks are a function of (seed, lane, epoch, step), the
        lane being the micro-batch's number over all workers: those of as many single workers, and
        nothing of the data is in them. One utterance or user at a time, they are a function of its
        own records, the step and a secret key, so that who else is drawn does not reach its
        gradient. In chunks of several units a mask's place depends on who is beside it; there the
        masks of all rows are independent of each other and unknown to whoever lacks the key, which
        makes the step a mixture, over the masks, of steps that are private each.
    """

    def __init__(
        self,
        loss_of: Callable[[Any], mx.nd.NDArray],
        batch_of: Callable[[np.ndarray], Any],
        *,
        lengths: np.ndarray,
        sampler: Sampler,
        mechanism: AnyMechanism,
        factor: float = 1.0,
        seed: int,
        rank: int,
    ) -> None:
        is_micro_batch = UNITS[sampler.unit].is_mean
        self._loss_of, self._batch_of, self._lengths = loss_of, batch_of, lengths
        self._divisor = (sampler.micro_batch_size if is_micro_batch else 1.0) / factor
        self._chunk_size = mechanism.clipping.chunk_size
        # Not by how many units are in a chunk: that may depend on the data.
        is_public = self._chunk_size == 1 or not mechanism.mask_key
        self._has_public_masks = is_micro_batch and is_public
        self._first_lane = rank * sampler.micro_batches_per_worker
        self._mask_key = int.from_bytes(mechanism.mask_key, "big")
        self._seed, self._rank = seed, rank

    def batches(self, draw: Draw) -> List[UnitBatch]:
        """The input of `__call__`, made of a draw; any thread may make it."""
        units = draw.units()
        chunks = chunks_of(draw, self._lengths, chunk_size=self._chunk_size)
        return [unit_batch(self._batch_of, [units[j] for j in c], first=c[0]) for c in chunks]

    def __call__(self, batches: Sequence[UnitBatch], *, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the function for the losses (U,) of each chunk of a step, alike at every call."""
        for chunk in batches:
            masks = (self._mask_key, self._seed, self._rank, epoch, step, *chunk.records.tolist())
            if self._has_public_masks:
                masks = (self._seed, self._first_lane + chunk.first, epoch, step)
            yield partial(self._losses, chunk, masks)

    def _losses(self, chunk: UnitBatch, masks: Sequence[int]) -> mx.nd.NDArray:
        seed_dropout(*masks)
        losses = self._loss_of(chunk.batch)  # (R,)
        if chunk.weights is not None:
            losses = losses * mx.nd.array(chunk.weights, ctx=losses.context)
        if len(losses) != chunk.num_units:
            losses = losses.reshape((chunk.num_units, -1)).sum(axis=1)  # (U,)
        return losses if self._divisor == 1 else losses / self._divisor


def chunks_of(draw: Draw, lengths: np.ndarray, *, chunk_size: int) -> Iterator[Sequence[int]]:
    """Yield the units of a draw in chunks of at most `chunk_size` rows, or of one unit.

    A unit of a chunk takes as many rows as the largest. So units of similar size, and of similar
    length, which saves padding, are in one chunk. Empty units are left out: their gradient is zero.
    """
    there = np.flatnonzero(draw.sizes)  # (n,)
    if len(there) == 0:
        return
    sizes = draw.sizes[there]  # (n,)
    starts = (np.cumsum(draw.sizes) - draw.sizes)[there]  # (n,)
    longest = np.maximum.reduceat(lengths[draw.records], starts)  # (n,)
    chunk: List[int] = []
    for place in np.lexsort((longest, sizes)).tolist():
        if chunk and (len(chunk) + 1) * sizes[place] > chunk_size:
            yield chunk
            chunk = []
        chunk.append(int(there[place]))
    yield chunk


def unit_batch(
    batch_of: Callable[[np.ndarray], Any], units: List[np.ndarray], *, first: int
) -> UnitBatch:
    """Return the batch of some units, each padded with its first record to the largest's size."""
    sizes = np.array([len(unit) for unit in units])  # (U,)
    rows = int(sizes.max())
    if (sizes == rows).all():
        records = np.concatenate(units)  # (R,)
        return UnitBatch(batch_of(records), records, len(units), None, first)
    filled = [np.r_[unit, np.repeat(unit[:1], rows - len(unit))] for unit in units]
    weights = (np.arange(rows) < sizes[:, None]).astype(np.float32).ravel()  # (R,)
    records = np.concatenate(filled)  # (R,)
    return UnitBatch(batch_of(records), records, len(units), weights, first)


def seed_dropout(*place: int) -> None:
    """Make the dropout masks of a step a function of its place (seed, lane, epoch, step) alone.

    MXNet's generator moves on by the size of what it fills. Left to itself it would carry the
    length of one utterance into the masks of all later steps of its worker, around the clipping,
    and a record would no longer count once an epoch. A hash, because MXNet's streams for seeds
    that lie close together overlap.
    """
    digest = hashlib.sha256(repr(place).encode()).digest()
    mx.random.seed(int.from_bytes(digest[:4], "big") >> 1)
