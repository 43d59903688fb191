"""The choice of masked pieces of a batch, and of their replacements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np

from edp_mx.data.batching import PieceInputs

FRACTION = 0.15  # of the pieces, which the model has to guess
MASKED, RANDOM = 0.8, 0.1  # of these; the rest is kept as it is


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
    batch: PieceInputs,
    vocabulary: Maskable,
    *,
    fraction: float = FRACTION,
    generator: np.random.Generator,
) -> MaskedBatch:
    """Choose a fraction of each text's pieces, at least one, and hide them; special pieces stay.

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
