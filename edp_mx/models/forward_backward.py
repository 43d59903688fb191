"""Forward–backward for a linear-chain CRF, batched, in float64 NumPy without MXNet.

The fast pass works with scaled probabilities, so that each step is one matrix product. Examples
in which a probability may have underflowed are computed again in log space.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Tuple

import numpy as np
from scipy.special import logsumexp

# A path is lost when its scaled probability falls below 1e-308. Even e^600 times that, times the
# number of ends of paths (T·K), is far below one rounding error.
MAX_LOG_AMPLIFICATION = 600.0
MOST_MOVES = 1 << 24  # floats: K·K of each example that is looked at together


class Chain(NamedTuple):
    """The scores that all utterances share. Shapes: transitions[from, to] (K, K), others (K,)."""

    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Marginals(NamedTuple):
    """Expectations of a CRF over the tags of N utterances.

    Shapes: log_partition (N,) · unary (N, T, K), the probability of tag k at token t, 0 at padding
    · pairwise (N, K, K), the expected number of steps from tag i to tag j, or (N, 0, 0) where it
    was not asked for.
    """

    log_partition: np.ndarray
    unary: np.ndarray
    pairwise: np.ndarray


class LossGradients(NamedTuple):
    """Negative log-likelihood and its gradients, per example.

    Shapes: loss (N,) · emissions (N, T, K) · transitions (N, K, K) · start, end (N, K).
    """

    loss: np.ndarray
    emissions: np.ndarray
    transitions: np.ndarray
    start: np.ndarray
    end: np.ndarray


def token_mask(lengths: np.ndarray, num_tokens: int) -> np.ndarray:
    """Return True at tokens and False at padding. Shapes: (N,) → (N, T)."""
    return np.arange(num_tokens) < np.asarray(lengths)[:, None]


def negative_log_likelihood(
    emissions: np.ndarray, tags: np.ndarray, lengths: np.ndarray, chain: Chain
) -> LossGradients:
    """Return the loss of the true tags and its gradients, exact in float64.

    Shapes: emissions (N, T, K) · tags (N, T) · lengths (N,), at least 1; padding is ignored.

    Example:
        >>> flat = Chain(np.zeros((3, 3)), np.zeros(3), np.zeros(3))
        >>> result = negative_log_likelihood(
        ...     np.zeros((1, 2, 3)), np.array([[0, 2]]), np.array([2]), flat)
        >>> bool(np.isclose(result.loss[0], np.log(9)))  # nine sequences, all equally likely
        True
    """
    emissions = np.asarray(emissions, np.float64)
    num_examples, num_tokens, _ = emissions.shape
    mask = token_mask(lengths, num_tokens)  # (N, T)
    tags = np.where(mask, tags, 0)
    result = marginals(emissions, lengths, chain)
    rows, last = np.arange(num_examples), np.asarray(lengths) - 1
    last_tags = tags[rows, last]  # (N,)
    examples, tokens = np.nonzero(mask)
    unary, pairwise = result.unary, result.pairwise
    start, end = unary[:, 0].copy(), unary[rows, last]  # (N, K)
    gold = path_scores(emissions, tags, lengths, chain)  # (N,)

    unary[examples, tokens, tags[examples, tokens]] -= 1.0
    examples, steps = np.nonzero(mask[:, 1:])
    np.subtract.at(pairwise, (examples, tags[examples, steps], tags[examples, steps + 1]), 1.0)
    start[rows, tags[:, 0]] -= 1.0
    end[rows, last_tags] -= 1.0
    return LossGradients(result.log_partition - gold, unary, pairwise, start, end)


def marginals(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain, *, has_pairs: bool = True
) -> Marginals:
    """Return the partition function and the marginals, those of pairs if asked for; in float64.

    Shapes: emissions (N, T, K) · lengths (N,), at least 1.
    Edge cases: the result is finite for scores of ±1e4 and beyond; scores that are not finite
    affect their own utterance only.
    """
    emissions = np.asarray(emissions, np.float64)
    lengths = np.asarray(lengths)
    chain = Chain(*(np.asarray(scores, np.float64) for scores in chain))
    result, is_exact = _scaled_marginals(emissions, lengths, chain, has_pairs)
    redo = np.flatnonzero(~is_exact)
    for some in groups(len(redo), len(chain.start)):
        rows = redo[some]
        exact = _log_space_marginals(emissions[rows], lengths[rows], chain, has_pairs)
        for whole, part in zip(result, exact):
            whole[rows] = part
    return result


def groups(num_examples: int, num_tags: int) -> Iterator[slice]:
    """Yield slices of examples whose moves, (n, K, K), are `MOST_MOVES` together."""
    size = max(1, MOST_MOVES // num_tags**2)
    for start in range(0, num_examples, size):
        yield slice(start, start + size)


def path_scores(
    emissions: np.ndarray, tags: np.ndarray, lengths: np.ndarray, chain: Chain
) -> np.ndarray:
    """Return the score of one tag sequence per utterance; `log_partition` is not subtracted.

    Shapes: emissions (N, T, K) · tags (N, T), ignored at padding · lengths (N,) → (N,).
    """
    mask = token_mask(lengths, emissions.shape[1])  # (N, T)
    tags = np.where(mask, tags, 0)
    local = np.take_along_axis(emissions, tags[:, :, None], axis=2)[:, :, 0]  # (N, T)
    moves = chain.transitions[tags[:, :-1], tags[:, 1:]]  # (N, T-1)
    local = np.where(mask, local, 0.0).sum(1)
    moves = np.where(mask[:, 1:], moves, 0.0).sum(1, dtype=np.float64)
    last_tags = tags[np.arange(len(tags)), np.asarray(lengths) - 1]  # (N,)
    return chain.start[tags[:, 0]] + local + moves + chain.end[last_tags]


@np.errstate(all="ignore")  # underflow and division by 0 are recognised as not exact
def _scaled_marginals(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain, has_pairs: bool = True
) -> Tuple[Marginals, np.ndarray]:
    """Return marginals by matrix products, and for which examples they are surely exact (N,)."""
    mask = token_mask(lengths, emissions.shape[1])  # (N, T)
    peak = emissions.max(axis=2)  # (N, T)
    local = np.exp(emissions - peak[:, :, None])  # (N, T, K) in [0, 1]
    move = np.exp(chain.transitions - chain.transitions.max())  # (K, K) in [0, 1]
    enter = np.exp(chain.start - chain.start.max())  # (K,)
    leave = np.exp(chain.end - chain.end.max())  # (K,)

    alpha, scale = _scaled_forward(local, mask, move, enter)  # (N, T, K), (N, T)
    final = alpha[:, -1] @ leave  # (N,)
    log_scale = np.log(scale)
    log_partition = (
        (log_scale + np.where(mask, peak, 0.0)).sum(1)
        + np.log(final)
        + (lengths - 1) * chain.transitions.max()
        + (chain.start.max() + chain.end.max())
    )
    # A lost probability is divided by its own step's scale; each later step multiplies it by at
    # most that step's growth and divides it by that step's scale.
    unchecked = np.log(final) + log_scale[:, 1:].sum(1) + log_scale.min(1)  # (N,)
    is_exact = _log_growth(local.sum(axis=2), mask) - unchecked < MAX_LOG_AMPLIFICATION  # (N,)
    if not is_exact.all():  # that bound takes every move to be as likely as the likeliest
        tight = _log_growth((local @ move.T).max(axis=2), mask)  # (N,)
        is_exact = tight - unchecked < MAX_LOG_AMPLIFICATION
    unary, flow = _scaled_backward(local, mask, move, alpha, scale, leave / final[:, None])
    pairwise = np.zeros((len(emissions), 0, 0))
    if has_pairs:
        pairwise = np.matmul(alpha[:, :-1].transpose(0, 2, 1), flow[:, 1:])  # (N, K, K)
        pairwise *= move
    return Marginals(log_partition, unary, pairwise), is_exact


def _log_growth(growth: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Sum the logarithms of all tokens after the first. Shapes: growth, mask (N, T) → (N,)."""
    return np.log(np.where(mask, growth, 1.0)[:, 1:]).sum(1)


def _scaled_forward(
    local: np.ndarray, mask: np.ndarray, move: np.ndarray, enter: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Return prefix probabilities (N, T, K) that sum to 1 per token, and their scales (N, T)."""
    alpha, scale = np.empty_like(local), np.ones(local.shape[:2])
    for t in range(local.shape[1]):
        reached = alpha[:, t - 1] @ move if t else enter  # (N, K)
        step = reached * local[:, t]
        total = step.sum(1)  # (N,)
        is_token = mask[:, t]
        scale[is_token, t] = total[is_token]
        step /= scale[:, t, None]
        alpha[:, t] = step if is_token.all() else np.where(is_token[:, None], step, alpha[:, t - 1])
    return alpha, scale


def _scaled_backward(
    local: np.ndarray,
    mask: np.ndarray,
    move: np.ndarray,
    alpha: np.ndarray,
    scale: np.ndarray,
    beta: np.ndarray,
) -> Tuple[np.ndarray, np.ndarray]:
    """Return unary marginals and what flows into each tag, (N, T, K), from the last β (N, K)."""
    unary = np.empty_like(local)  # β first
    flow = np.where(mask[:, :, None], local / scale[:, :, None], 0.0)  # without β first
    for t in range(local.shape[1] - 1, 0, -1):
        unary[:, t] = beta
        flow[:, t] *= beta
        before = flow[:, t] @ move.T  # (N, K)
        beta = before if mask[:, t].all() else np.where(mask[:, t, None], before, beta)
    unary[:, 0] = beta
    unary *= alpha
    unary[~mask] = 0.0
    return unary, flow


@np.errstate(all="ignore")  # log 0 = −∞ is intended
def _log_space_marginals(
    emissions: np.ndarray, lengths: np.ndarray, chain: Chain, has_pairs: bool
) -> Marginals:
    """Compute the marginals by log-sum-exp over (N, K, K): slow, exact for every finite score."""
    num_tokens, num_tags = emissions.shape[1:]
    mask = token_mask(lengths, num_tokens)[:, :, None]  # (N, T, 1)
    alpha = np.empty_like(emissions)  # (N, T, K)
    alpha[:, 0] = chain.start + emissions[:, 0]
    for t in range(1, num_tokens):
        reached = logsumexp(alpha[:, t - 1, :, None] + chain.transitions, axis=1)  # (N, K)
        alpha[:, t] = np.where(mask[:, t], reached + emissions[:, t], alpha[:, t - 1])
    log_partition = logsumexp(alpha[:, -1] + chain.end, axis=1)  # (N,)

    unary = np.zeros_like(emissions)
    pairwise = np.zeros((len(emissions), *[num_tags * has_pairs] * 2))
    beta = np.broadcast_to(chain.end, alpha[:, 0].shape)  # (N, K)
    for t in range(num_tokens - 1, -1, -1):
        unary[:, t] = np.where(mask[:, t], np.exp(alpha[:, t] + beta - log_partition[:, None]), 0.0)
        if t:
            onward = chain.transitions + (emissions[:, t] + beta)[:, None, :]  # (N, K, K)
            if has_pairs:
                joint = np.exp(alpha[:, t - 1, :, None] + onward - log_partition[:, None, None])
                pairwise += np.where(mask[:, t, :, None], joint, 0.0)
            beta = np.where(mask[:, t], logsumexp(onward, axis=2), beta)
    return Marginals(log_partition, unary, pairwise)
