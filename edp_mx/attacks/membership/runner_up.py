"""The scores of the best and the second-best tag path of a linear-chain CRF, in NumPy."""

from __future__ import annotations

from typing import Tuple

import numpy as np

from edp_mx.models.forward_backward import Chain
from edp_mx.models.viterbi import leads, within_reach


def best_two_scores(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the scores of the two best tag paths, exactly (Viterbi with two paths per tag).

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 → (N,), (N,).
    Edge cases: the second is −inf where there is one path only (a single tag).
    """
    emissions, lengths = np.asarray(emissions, np.float64), np.asarray(lengths)
    transitions = np.asarray(chain.transitions, np.float64)
    lead = leads(transitions)  # (K,)
    best = chain.start + emissions[:, 0]  # (N, K)
    second = np.full_like(best, -np.inf)  # (N, K): one path of one token per tag
    for t in range(1, int(lengths.max())):
        rows = np.flatnonzero(lengths > t)  # of utterances that still have a token
        paths = np.concatenate([best[rows], second[rows]], axis=1)  # (rows, 2K)
        first, other = _moved(paths, transitions, lead)
        best[rows], second[rows] = first + emissions[rows, t], other + emissions[rows, t]
    pair = np.sort(np.concatenate([best + chain.end, second + chain.end], axis=1), axis=1)
    return pair[:, -1], pair[:, -2]


def _moved(
    paths: np.ndarray, transitions: np.ndarray, lead: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the scores of the two best ways into each tag, among those that can be best.

    Shapes: paths (N, 2K), two for each tag to come from → (N, K), (N, K).
    """
    num_tags = len(lead)
    two = np.argpartition(-paths, 1, axis=1)[:, :2]  # (N, 2)
    top = np.take_along_axis(paths, two, axis=1)  # (N, 2)
    is_open = within_reach(paths, top[:, 1], lead[two % num_tags].max(axis=1))  # (N, 2K)
    rows, places = np.nonzero(is_open)  # (S,) each, row by row; two in each row at least
    ways = transitions[places % num_tags]  # (S, K)
    ways += paths[rows, places][:, None]
    starts = np.searchsorted(rows, np.arange(len(paths)))  # (N,)
    first = np.maximum.reduceat(ways, starts, axis=0)  # (N, K)
    is_first = ways == first[rows]  # (S, K)
    is_tied = np.add.reduceat(is_first, starts, axis=0, dtype=np.int64) > 1  # (N, K)
    ways[is_first] = -np.inf
    return first, np.where(is_tied, first, np.maximum.reduceat(ways, starts, axis=0))
