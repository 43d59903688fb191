"""The order of a text's lines in an epoch, the same on every worker, and their pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, Sequence

import numpy as np

_ORDER = 0x0D  # what the seed is used for here


@dataclass(frozen=True, eq=False)
class PieceBatch:
    """Lines as [CLS] pieces [SEP], (N, P) int32, padded to the longest; lengths (N,)."""

    pieces: np.ndarray
    lengths: np.ndarray


def global_batches(
    lines: Iterable[str], *, batch_size: int, buffer_size: int, seed: int, epoch: int
) -> Iterator[List[str]]:
    """Yield shuffled batches of lines of similar length, in bounded memory.

    A buffer of lines is shuffled; lines that do not fill a batch are carried to the next buffer,
    the others are sorted by length and cut into batches, and the batches are shuffled.

    Guarantee: a function of the arguments alone; ⌊lines / batch_size⌋ batches, no line twice. The
        last lines, which fill no batch, are left out; they differ by epoch.
    """
    buffer_size = max(buffer_size, batch_size)
    carried: List[str] = []
    for number, buffer in enumerate(_buffers(lines, buffer_size)):
        generator = np.random.default_rng([seed, _ORDER, epoch, number])
        buffer = carried + buffer
        buffer = [buffer[i] for i in generator.permutation(len(buffer))]
        whole = len(buffer) - len(buffer) % batch_size
        carried = buffer[whole:]
        ordered = sorted(buffer[:whole], key=len)
        starts = range(0, whole, batch_size)
        for i in generator.permutation(len(starts)):
            yield ordered[starts[i] : starts[i] + batch_size]


def _buffers(lines: Iterable[str], size: int) -> Iterator[List[str]]:
    """Yield lines in groups of `size`; the last is larger, since a small one would be left out."""
    full: List[str] = []
    buffer: List[str] = []
    for line in lines:
        buffer.append(line)
        if len(buffer) == size:
            if full:
                yield full
            full, buffer = buffer, []
    if full or buffer:
        yield full + buffer


def piece_batch(
    lines: Sequence[str],
    encode: Callable[[str], Sequence[int]],
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int,
    max_pieces: int,
) -> PieceBatch:
    """Return the lines as [CLS] pieces [SEP], cut to `max_pieces`."""
    rows = [[cls_id, *encode(line)[: max_pieces - 2], sep_id] for line in lines]
    lengths = np.array([len(row) for row in rows], np.int32)  # (N,)
    pieces = np.full((len(rows), lengths.max()), pad_id, np.int32)  # (N, P)
    for i, row in enumerate(rows):
        pieces[i, : len(row)] = row
    return PieceBatch(pieces, lengths)
