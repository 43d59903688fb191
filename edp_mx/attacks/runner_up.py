"""The scores of the best and the second-best tag path of a linear-chain CRF, in NumPy."""

from __future__ import annotations

from typing import Tuple

import numpy as np

from edp_mx.models.forward_backward import Chain, token_mask


def best_two_scores(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Tuple[np.ndarray, np.ndarray]:
    """Viterbi decoding that keeps, for each last tag, the two best paths; exact.

    Shapes: emissions (N, T, K) · lengths (N,), at least 1 → (N,), (N,).
    Edge cases: −inf for the second where there is one path only (a single tag).
    """
    emissions = np.asarray(emissions, np.float64)
    mask = token_mask(lengths, emissions.shape[1])[:, :, None]  # (N, T, 1)
    into = np.ascontiguousarray(np.asarray(chain.transitions, np.float64).T)  # (to, from)
    best = chain.start + emissions[:, 0]  # (N, K)
    second = np.full_like(best, -np.inf)  # (N, K): there is one path of one token a tag
    for t in range(1, emissions.shape[1]):
        scores = best[:, None, :] + into  # (N, to, from)
        source = scores.argmax(axis=2)[:, :, None]  # (N, to, 1)
        first = np.take_along_axis(scores, source, axis=2)[:, :, 0]  # (N, K)
        np.put_along_axis(scores, source, -np.inf, axis=2)
        same = np.take_along_axis(second[:, None, :] + into, source, axis=2)[:, :, 0]
        other = np.maximum(scores.max(axis=2), same)
        second = np.where(mask[:, t], other + emissions[:, t], second)
        best = np.where(mask[:, t], first + emissions[:, t], best)
    pair = np.sort(np.concatenate([best + chain.end, second + chain.end], axis=1), axis=1)
    return pair[:, -1], pair[:, -2]
