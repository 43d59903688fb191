"""A text's batches in an epoch, the same on every worker, and which pieces are masked in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, List, Sequence

import numpy as np

_ORDER = 0x0D  # what the seed is used for here
MASKED, RANDOM = 0.8, 0.1  # of the chosen pieces; the rest is kept as it is


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


class Maskable:
    """The pieces of a vocabulary that may be masked: all but the special ones."""

    def __init__(self, *, num_pieces: int, mask_id: int, special_ids: Sequence[int]) -> None:
        self.mask_id = mask_id
        self.is_special = np.isin(np.arange(num_pieces), list(special_ids))  # (V,)
        self.ordinary = np.flatnonzero(~self.is_special).astype(np.int32)  # (V − specials,)


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """A batch with some pieces hidden; if nothing can be, there is one place of weight 0.

    Shapes: pieces (N, P) int32, as the model sees them · lengths (N,) · places (2, K) int32, row
        and column of what it must guess · targets (K,) int32, the true pieces · counts (K,)
        float32, the weight of each.
    """

    pieces: np.ndarray
    lengths: np.ndarray
    places: np.ndarray
    targets: np.ndarray
    counts: np.ndarray


def mask(
    batch: PieceBatch, vocabulary: Maskable, *, fraction: float, generator: np.random.Generator
) -> MaskedBatch:
    """Choose a fraction of each line's pieces, at least one, and hide them; special pieces stay.

    80 % of the chosen become [MASK], 10 % a random piece, 10 % stay.

    Source: Devlin et al. 2019, section 3.1 and appendix A.1.
    """
    special = vocabulary.is_special[batch.pieces]  # (N, P)
    wanted = np.maximum(1, np.rint(fraction * (~special).sum(axis=1)))  # (N,)
    keys = np.where(special, 2.0, generator.random(batch.pieces.shape))  # (N, P)
    ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")  # (N, P)
    places = np.stack(np.nonzero((ranks < wanted[:, None]) & ~special))  # (2, K)
    counts = np.ones(places.shape[1], np.float32)  # (K,)
    if not places.size:
        return MaskedBatch(batch.pieces, batch.lengths, np.zeros((2, 1), np.int32),
                           batch.pieces[0, :1], np.zeros(1, np.float32))  # fmt: skip
    targets = batch.pieces[tuple(places)]  # (K,)
    lot = generator.random(len(targets))  # (K,)
    other = generator.choice(vocabulary.ordinary, len(targets))  # (K,)
    seen = np.where(lot < MASKED, vocabulary.mask_id,
                    np.where(lot < MASKED + RANDOM, other, targets))  # (K,)  # fmt: skip
    pieces = batch.pieces.copy()
    pieces[tuple(places)] = seen
    return MaskedBatch(pieces, batch.lengths, places.astype(np.int32), targets, counts)
