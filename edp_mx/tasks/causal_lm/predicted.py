"""Which pieces of a sequence are predicted, and from where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edp_mx.data.batching import PieceInputs


class Predicted(NamedTuple):
    """The predicted pieces of a batch, in order, those of a text behind one another.

    Shapes: both (N, R) int32, R the most pieces of a text: `places`, of the pieces before them;
        `targets`, their ids, −1 behind the last of a text.
    """

    places: np.ndarray
    targets: np.ndarray


def predicted(inputs: PieceInputs, *, end: int) -> Predicted:
    """Return the pieces behind the prompt of each sequence, with the one that closes it.

    A prompt ends at the last separator (a `<|reply|>`, or what stands between two texts) inside
    the sequence, which is the same piece as the one that closes it; without it all pieces are
    predicted.

    Args:
        end: id of the piece that closes a sequence.
    """
    pieces, lengths = inputs.pieces, inputs.lengths  # (N, P), (N,)
    steps = np.arange(pieces.shape[1])
    is_inside = (steps > 0) & (steps < lengths[:, None] - 1)  # (N, P)
    begins = np.where(is_inside & (pieces == end), steps, 0).max(axis=1)  # (N,)
    numbers = lengths - 1 - begins  # (N,)
    places = begins[:, None] + np.arange(numbers.max())  # (N, R)
    is_there = places < lengths[:, None] - 1  # (N, R)
    places = np.where(is_there, places, 0)
    targets = np.where(is_there, np.take_along_axis(pieces, places + 1, axis=1), -1)  # (N, R)
    return Predicted(places.astype(np.int32), targets)
