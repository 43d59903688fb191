"""Viterbi against enumeration."""

import numpy as np
from crf_oracle import random_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_mx.models.forward_backward import Chain
from edp_mx.models.viterbi import best_tags


def every_way(emissions, chain):
    """Viterbi for one utterance (T, K), one tag after the other: no tag is left out."""
    best, came_from = chain.start + emissions[0], []
    for scores in emissions[1:]:
        ways = [best + chain.transitions[:, tag] for tag in range(len(best))]
        came_from.append([int(way.argmax()) for way in ways])
        best = np.array([way.max() for way in ways]) + scores
    best = best + chain.end
    path = [int(best.argmax())]
    for sources in came_from[::-1]:
        path.append(sources[path[-1]])
    return path[::-1], best.max()


@settings(max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    num_tags=st.integers(1, 12),
    spread=st.sampled_from([0.0, 0.01, 0.3, 3.0]),
    has_ties=st.booleans(),
    forbidden=st.booleans(),
    padding=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_same_bits_as_when_no_tag_is_left_out(
    lengths, num_tags, spread, has_ties, forbidden, padding, seed
):
    rng = np.random.default_rng(seed)
    emissions = rng.normal(0, 2, (len(lengths), max(lengths) + padding, num_tags))
    chain = random_chain(rng, num_tags, spread)
    if has_ties:
        emissions, chain = np.round(emissions), Chain(*(np.round(scores) for scores in chain))
    if forbidden:
        chain.transitions[rng.random((num_tags, num_tags)) < 0.3] = rng.choice([-1e4, -np.inf])
    tags, scores = best_tags(emissions, np.array(lengths), chain)
    for row, length in enumerate(lengths):
        path, score = every_way(emissions[row, :length], chain)
        assert tags[row].tolist() == path
        assert scores[row] == score


def test_an_utterance_that_is_not_finite_spoils_no_other():
    rng = np.random.default_rng(1)
    emissions, chain = rng.normal(0, 2, (5, 4, 6)), random_chain(rng, 6)
    expected, _ = best_tags(emissions, [4, 2, 4, 3, 4], chain)
    emissions[1, 1, 2], emissions[4, 0, 3], emissions[2, 2] = np.nan, np.inf, -np.inf
    tags, scores = best_tags(emissions, [4, 2, 4, 3, 4], chain)
    assert np.isnan(scores[1]) and scores[4] == np.inf and scores[2] == -np.inf
    for row in (0, 3):
        assert tags[row].tolist() == expected[row].tolist()
