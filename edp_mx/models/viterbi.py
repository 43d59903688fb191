"""The best tag sequence of a linear-chain CRF, batched, in NumPy (no MXNet)."""

from __future__ import annotations

from typing import List, Tuple

import numpy as np

from edp_mx.models.forward_backward import Chain, token_mask


def best_tags(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[List[np.ndarray], np.ndarray]:
    """Viterbi decoding.

    Returns:
        N arrays of tag ids, each as long as its utterance, and the scores of the N sequences.

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 · scores (N,).
    Edge cases: among equal scores the smallest last tag wins, then the smallest one before it.
    """
    emissions = np.asarray(emissions, np.float64)
    num_examples, num_tokens, num_tags = emissions.shape
    mask = token_mask(lengths, num_tokens)[:, :, None]  # (N, T, 1)
    into = np.ascontiguousarray(np.asarray(chain.transitions, np.float64).T)  # (to, from)
    came_from = np.empty((num_examples, num_tokens, num_tags), np.int32)
    best = chain.start + emissions[:, 0]  # (N, K)
    stay = np.arange(num_tags)
    for t in range(1, num_tokens):
        scores = best[:, None, :] + into  # (N, to, from)
        source = scores.argmax(axis=2)  # (N, K)
        moved = np.take_along_axis(scores, source[:, :, None], axis=2)[:, :, 0] + emissions[:, t]
        came_from[:, t] = np.where(mask[:, t], source, stay)
        best = np.where(mask[:, t], moved, best)

    best = best + chain.end
    rows, tag = np.arange(num_examples), best.argmax(axis=1)  # (N,)
    paths = np.empty((num_examples, num_tokens), np.int32)
    for t in range(num_tokens - 1, -1, -1):
        paths[:, t] = tag
        if t:
            tag = came_from[rows, t, tag]
    tags = [path[:length] for path, length in zip(paths, np.asarray(lengths))]
    return tags, best.max(axis=1)
