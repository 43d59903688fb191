"""From a draw to batches: the units of one step in chunks, as a clipping takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.draws import Draw
from edp_mx.data.encoding import EncodedCorpus


@dataclass(frozen=True, eq=False)
class UnitBatch:
    """The rows of some units, ready for the model.

    Attributes:
        batch: of all rows, R; those of one unit follow one another.
        num_units: U; each has R / U rows.
        weights: what each row counts: 0 for those that only fill a unit up; None if all count 1.
        first: the number of the first unit in its draw.

    Shapes: weights (R,) float32.
    """

    batch: Batch
    num_units: int
    weights: Optional[np.ndarray]
    first: int


def chunks_of(draw: Draw, lengths: np.ndarray, *, chunk_size: int) -> Iterator[Sequence[int]]:
    """Yield the units of a draw in chunks of at most `chunk_size` rows, or of one unit.

    A unit of a chunk takes as many rows as the largest. So units of similar size, and of similar
    length, which saves padding, are in one chunk; the sum over the units is the same.

    Args:
        lengths: of all records.

    Returns:
        The units' numbers in the draw. Empty ones are left out: their gradient is zero.

    Shapes: lengths (records,).
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


def unit_batch(corpus: EncodedCorpus, units: List[np.ndarray], *, first: int) -> UnitBatch:
    """Return the batch of some units, each padded with its first record to the size of the largest.

    Shapes: units, arrays (size,) of records, at least one in each.
    """
    sizes = np.array([len(unit) for unit in units])  # (U,)
    rows = int(sizes.max())
    if (sizes == rows).all():
        return UnitBatch(corpus.batch(np.concatenate(units)), len(units), None, first)
    filled = [np.r_[unit, np.repeat(unit[:1], rows - len(unit))] for unit in units]
    weights = (np.arange(rows) < sizes[:, None]).astype(np.float32).ravel()  # (R,)
    return UnitBatch(corpus.batch(np.concatenate(filled)), len(units), weights, first)


def places_of(chunk: UnitBatch) -> Tuple[int, ...]:
    """Return the records of a chunk, of which the dropout masks are a function."""
    return tuple(map(int, chunk.batch.indices))
