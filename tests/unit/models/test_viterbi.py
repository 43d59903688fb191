"""Viterbi against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from crf_oracle import enumerate_paths, path_score, random_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_mx.models.forward_backward import Chain
from edp_mx.models.viterbi import best_tags


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    num_tags=st.integers(1, 4),
    forbidden=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_best_of_all_paths(lengths, num_tags, forbidden, seed):
    rng = np.random.default_rng(seed)
    emissions = rng.normal(0, 2, (len(lengths), max(lengths), num_tags))
    chain = random_chain(rng, num_tags)
    if forbidden:
        chain.transitions[rng.random((num_tags, num_tags)) < 0.4] = -1e4
    tags, scores = best_tags(emissions, lengths, chain)
    for row, length in enumerate(lengths):
        paths, all_scores = enumerate_paths(emissions[row, :length], chain)
        assert tuple(tags[row]) == paths[all_scores.argmax()]
        assert scores[row] == pytest.approx(all_scores.max(), rel=1e-12)


def test_ties_go_to_the_smallest_tags():
    tags, _ = best_tags(np.zeros((1, 3, 4)), [3], Chain(np.zeros((4, 4)), np.zeros(4), np.zeros(4)))
    assert tags[0].tolist() == [0, 0, 0]


def test_a_small_difference_decides_beside_forbidden_transitions():
    """In float32 the 0.01 would be lost beside −3e5."""
    chain = Chain(np.full((2, 2), -1e4), np.zeros(2), np.array([0.0, 0.01]))
    emissions = np.zeros((1, 31, 2))
    tags, scores = best_tags(emissions, [31], chain)
    assert tags[0][-1] == 1
    assert scores[0] == pytest.approx(path_score(tags[0], emissions[0], chain), rel=1e-15)
