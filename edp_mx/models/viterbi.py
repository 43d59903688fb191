"""The best tag sequence of a linear-chain CRF, and the runner-up's score, in NumPy without MXNet.

A tag is dropped when it trails the best one by more than any transition can make up for. In a
trained model little more than one tag per token remains. The result is the same to the last bit.
"""

from __future__ import annotations

from typing import List, Tuple

import numpy as np

from edp_mx.models.forward_backward import Chain, groups

_ROUNDING = 1e-12  # relative, far above float64's: tags this close are kept too


def best_tags(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[List[np.ndarray], np.ndarray]:
    """Find the best tags by Viterbi decoding; of equal scores the smallest last tag wins.

    Returns:
        N arrays of tag ids, each as long as its utterance, and the scores of the N sequences.

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 · scores (N,).
    """
    emissions, lengths = np.asarray(emissions, np.float64), np.asarray(lengths)
    transitions = np.asarray(chain.transitions, np.float64)
    lead = _leads(transitions)  # (K,)
    best = np.empty_like(emissions)  # (N, T, K): the best score of all paths that end there
    best[:, 0] = chain.start + emissions[:, 0]
    for t in range(1, int(lengths.max())):
        rows = np.flatnonzero(lengths > t)  # utterances that still have a token
        best[rows, t] = _moved(best[rows, t - 1], transitions, lead) + emissions[rows, t]

    ends = best[np.arange(len(lengths)), lengths - 1] + chain.end  # (N, K)
    paths = _walk_back(best, ends.argmax(axis=1), lengths, transitions)  # (N, T)
    return [path[:length] for path, length in zip(paths, lengths)], ends.max(axis=1)


@np.errstate(invalid="ignore")  # ∞ − ∞: no lead of such a tag is enough
def _leads(transitions: np.ndarray) -> np.ndarray:
    """Return the lead of each tag (K,) beyond which paths through other tags cannot catch up."""
    return (transitions.max(axis=0) - transitions).max(axis=1)


@np.errstate(invalid="ignore")
def _within_reach(scores: np.ndarray, top: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return which scores (N, S) may still overtake a path whose score is `top` and lead is `lead`.

    A score that cannot be compared (NaN) is within reach. Shapes: top, lead (N,).
    """
    floor = top - lead - _ROUNDING * (np.abs(top) + lead)  # (N,)
    return ~(scores < floor[:, None])


def _moved(best: np.ndarray, transitions: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return the best score of a move into each tag. Shapes: (N, K from) → (N, K to)."""
    moved = np.empty_like(best)
    for some in groups(len(best), len(lead)):  # of an untrained model all tags are open
        moved[some] = _moved_some(best[some], transitions, lead)
    return moved


def _moved_some(best: np.ndarray, transitions: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return the same of so few utterances that all their moves are held at once."""
    top = best.argmax(axis=1)  # (N,)
    is_open = _within_reach(best, best[np.arange(len(best)), top], lead[top])  # (N, K)
    rows, tags = np.nonzero(is_open)  # (S,) each, row by row; every row has at least one
    ways = transitions[tags]  # (S, K)
    ways += best[rows, tags][:, None]
    return np.maximum.reduceat(ways, np.searchsorted(rows, np.arange(len(best))), axis=0)


def _walk_back(
    best: np.ndarray, tags: np.ndarray, lengths: np.ndarray, transitions: np.ndarray
) -> np.ndarray:
    """Follow the best paths back from the last tags (N,). Shapes: best (N, T, K) → (N, T)."""
    into = np.ascontiguousarray(transitions.T)  # (to, from)
    paths = np.zeros(best.shape[:2], np.int32)
    rows = np.arange(len(best))
    paths[rows, lengths - 1] = tags
    for t in range(int(lengths.max()) - 2, -1, -1):
        rows = np.flatnonzero(lengths > t + 1)
        paths[rows, t] = (best[rows, t] + into[paths[rows, t + 1]]).argmax(axis=1)
    return paths


def best_two_scores(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the scores of the two best tag paths, exactly (Viterbi with two paths per tag).

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 → (N,), (N,).
    Edge cases: the second is −inf where there is one path only (a single tag).
    """
    emissions, lengths = np.asarray(emissions, np.float64), np.asarray(lengths)
    transitions = np.asarray(chain.transitions, np.float64)
    lead = _leads(transitions)  # (K,)
    best = chain.start + emissions[:, 0]  # (N, K)
    second = np.full_like(best, -np.inf)  # (N, K): one path of one token per tag
    for t in range(1, int(lengths.max())):
        rows = np.flatnonzero(lengths > t)  # of utterances that still have a token
        paths = np.concatenate([best[rows], second[rows]], axis=1)  # (rows, 2K)
        first, other = _two_moved(paths, transitions, lead)
        best[rows], second[rows] = first + emissions[rows, t], other + emissions[rows, t]
    pair = np.sort(np.concatenate([best + chain.end, second + chain.end], axis=1), axis=1)
    return pair[:, -1], pair[:, -2]


def _two_moved(
    paths: np.ndarray, transitions: np.ndarray, lead: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the scores of the two best ways into each tag, among those that can be best.

    Shapes: paths (N, 2K), two for each tag to come from → (N, K), (N, K).
    """
    num_tags = len(lead)
    two = np.argpartition(-paths, 1, axis=1)[:, :2]  # (N, 2)
    top = np.take_along_axis(paths, two, axis=1)  # (N, 2)
    is_open = _within_reach(paths, top[:, 1], lead[two % num_tags].max(axis=1))  # (N, 2K)
    rows, places = np.nonzero(is_open)  # (S,) each, row by row; two in each row at least
    ways = transitions[places % num_tags]  # (S, K)
    ways += paths[rows, places][:, None]
    starts = np.searchsorted(rows, np.arange(len(paths)))  # (N,)
    first = np.maximum.reduceat(ways, starts, axis=0)  # (N, K)
    is_first = ways == first[rows]  # (S, K)
    is_tied = np.add.reduceat(is_first, starts, axis=0, dtype=np.int64) > 1  # (N, K)
    ways[is_first] = -np.inf
    return first, np.where(is_tied, first, np.maximum.reduceat(ways, starts, axis=0))
