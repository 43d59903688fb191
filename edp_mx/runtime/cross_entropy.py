"""The cross entropy over a large vocabulary, of whose scores only a part exists at a time.

The score of piece v at a place with the state x (d,) is x · w_v, where w_v (d,) is a row of the
table, and the loss of a place is −ln of the target's share in the softmax of its V scores. Both
passes go through the table block by block and so need a few MB beside their arguments, however
large the vocabulary is. The backward pass makes the scores again.

Source: Milakov and Gimelshein 2018, algorithm 3, for the softmax in one pass.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Tuple

import numpy as np

SCORES = 1 << 20  # floats that exist at a time: 4 MB


class CrossEntropy(NamedTuple):
    """What the forward pass finds at K places.

    Shapes: losses (K,), not below 0 · likeliest (K,), the piece with the largest score · shifts
        (K, 3), that score, the logarithm of the sum of exp(score − largest), and the share of all
        pieces but the target · gradients (K, d), of each loss with respect to its state; of no
        meaning where they were not asked for.
    """

    losses: np.ndarray
    likeliest: np.ndarray
    shifts: np.ndarray
    gradients: np.ndarray


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def forward(
    states: np.ndarray, table: np.ndarray, targets: np.ndarray, *, has_gradients: bool = True
) -> CrossEntropy:
    """Return the losses of K places. Shapes: states (K, d), table (V, d), targets (K,) int."""
    rows = np.arange(len(states))
    largest = np.full(len(states), -np.inf, states.dtype)  # (K,)
    sums, others, true, likeliest = (np.zeros_like(largest) for _ in range(4))  # (K,) each
    means = np.zeros_like(states)  # (K, d), of the pieces' vectors, still to be divided by the sums
    for block, scores, (places, columns) in _blocks(states, table, targets):
        best = scores.argmax(axis=1)
        here = scores[rows, best]
        likeliest = np.where(here > largest, block.start + best, likeliest)
        true[places] = scores[places, columns]
        before, largest = largest, np.maximum(largest, here)
        scores -= largest[:, None]
        np.exp(scores, out=scores)
        shrunken = np.exp(before - largest)
        sums = shrunken * sums + scores.sum(axis=1)
        if has_gradients:
            means *= shrunken[:, None]
            means += scores @ table[block]
        scores[places, columns] = 0
        others = shrunken * others + scores.sum(axis=1)
    log_sums = np.log(sums)
    if has_gradients:
        means /= sums[:, None]
        means -= table[targets]
    shifts = np.stack([largest, log_sums, others / sums], axis=1)
    return CrossEntropy(log_sums + (largest - true), likeliest, shifts, means)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def score_gradients(
    states: np.ndarray, table: np.ndarray, targets: np.ndarray, shifts: np.ndarray
) -> Iterator[Tuple[slice, np.ndarray]]:
    """Yield blocks of pieces, and the gradients of the K losses with respect to their scores.

    The target's is minus the share of the others, as `forward` found it: its own share less 1 would
    be rounding alone where it is near 1, another at each call.

    Shapes: as of `forward`; shifts (K, 3) of it → (K, pieces in the block), written over by the
        next.
    """
    for block, scores, (places, columns) in _blocks(states, table, targets):
        for shift in shifts[:, :2].T:
            scores -= shift[:, None]
        np.exp(scores, out=scores)
        scores[places, columns] = -shifts[places, 2]
        yield block, scores


def _blocks(
    states: np.ndarray, table: np.ndarray, targets: np.ndarray
) -> Iterator[Tuple[slice, np.ndarray, Tuple[np.ndarray, np.ndarray]]]:
    """Yield blocks of pieces, their scores (K, v), and where the scores of targets are."""
    size = max(1, SCORES // max(1, len(states)))
    for start in range(0, len(table), size):
        block = slice(start, min(start + size, len(table)))
        (places,) = np.nonzero((targets >= block.start) & (targets < block.stop))
        yield block, states @ table[block].T, (places, targets[places] - start)
