"""The best tag sequence of a linear-chain CRF, batched, in NumPy (no MXNet).

A tag that lies further behind the best one than any transition can make up for is no longer looked
at. Of a trained model little more than one tag a token is left, of any model the result is the same
to the last bit.
"""

from __future__ import annotations

from typing import List, Tuple

import numpy as np

from edp_mx.models.forward_backward import Chain

_ROUNDING = 1e-12  # far above float64's, relative: what lies this close is looked at too


def best_tags(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[List[np.ndarray], np.ndarray]:
    """Viterbi decoding.

    Returns:
        N arrays of tag ids, each as long as its utterance, and the scores of the N sequences.

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 · scores (N,).
    Edge cases: among equal scores the smallest last tag wins, then the smallest one before it.
    """
    emissions, lengths = np.asarray(emissions, np.float64), np.asarray(lengths)
    transitions = np.asarray(chain.transitions, np.float64)
    lead = leads(transitions)  # (K,)
    best = np.empty_like(emissions)  # (N, T, K): of all paths that end there
    best[:, 0] = chain.start + emissions[:, 0]
    for t in range(1, int(lengths.max())):
        rows = np.flatnonzero(lengths > t)  # of utterances that still have a token
        best[rows, t] = _moved(best[rows, t - 1], transitions, lead) + emissions[rows, t]

    ends = best[np.arange(len(lengths)), lengths - 1] + chain.end  # (N, K)
    paths = _walk_back(best, ends.argmax(axis=1), lengths, transitions)  # (N, T)
    return [path[:length] for path, length in zip(paths, lengths)], ends.max(axis=1)


@np.errstate(invalid="ignore")  # ∞ − ∞: such a tag leads by nothing that could be relied upon
def leads(transitions: np.ndarray) -> np.ndarray:
    """By how much each tag must lead for all that follows another tag to be out of reach.

    Shapes: transitions[from, to] (K, K) → (K,).
    """
    return (transitions.max(axis=0) - transitions).max(axis=1)


@np.errstate(invalid="ignore")
def within_reach(scores: np.ndarray, top: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Which scores may still end up above that of a path which has `top` now.

    Args:
        lead: that of the tag that has `top`.

    Shapes: scores (N, S) · top, lead (N,) → (N, S) bool.
    Edge cases: what cannot be compared is within reach.
    """
    floor = top - lead - _ROUNDING * (np.abs(top) + lead)  # (N,)
    return ~(scores < floor[:, None])


def _moved(best: np.ndarray, transitions: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """The score of the best way into each tag. Shapes: (N, K from) → (N, K to)."""
    top = best.argmax(axis=1)  # (N,)
    is_open = within_reach(best, best[np.arange(len(best)), top], lead[top])  # (N, K)
    rows, tags = np.nonzero(is_open)  # (S,) each, row by row; no row is without one
    ways = transitions[tags]  # (S, K)
    ways += best[rows, tags][:, None]
    return np.maximum.reduceat(ways, np.searchsorted(rows, np.arange(len(best))), axis=0)


def _walk_back(
    best: np.ndarray, tags: np.ndarray, lengths: np.ndarray, transitions: np.ndarray
) -> np.ndarray:
    """From the last tags (N,) to the first, all utterances at once.

    Shapes: best (N, T, K) → (N, T), 0 at padding.
    """
    into = np.ascontiguousarray(transitions.T)  # (to, from)
    paths = np.zeros(best.shape[:2], np.int32)
    rows = np.arange(len(best))
    paths[rows, lengths - 1] = tags
    for t in range(int(lengths.max()) - 2, -1, -1):
        rows = np.flatnonzero(lengths > t + 1)
        paths[rows, t] = (best[rows, t] + into[paths[rows, t + 1]]).argmax(axis=1)
    return paths
