"""The CRF's loss and gradients against enumeration, and where float64 itself runs out."""

import numpy as np
import pytest
from crf_oracle import enumerated_loss, random_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from edp_mx.models import forward_backward
from edp_mx.models.forward_backward import Chain, marginals, negative_log_likelihood


def check_against_enumeration(emissions, tags, lengths, chain, tolerance=1e-10):
    result = negative_log_likelihood(emissions, tags, lengths, chain)
    for row, length in enumerate(lengths):
        loss, expected = enumerated_loss(emissions[row, :length], tags[row, :length], chain)
        assert result.loss[row] == pytest.approx(loss, rel=tolerance, abs=tolerance)
        found = result.emissions[row, :length], *(field[row] for field in result[2:])
        for name, mine, theirs in zip(result._fields[1:], found, expected):
            np.testing.assert_allclose(mine, theirs, atol=tolerance, err_msg=name)
        assert not result.emissions[row, length:].any()


@pytest.mark.parametrize("is_log_space", [False, True])
@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    num_tags=st.integers(1, 4),
    scale=st.sampled_from([1.0, 30.0, 300.0, 3e3, 1e5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_exact_against_enumeration(is_log_space, lengths, num_tags, scale, seed):
    rng = np.random.default_rng(seed)
    shape = (len(lengths), max(lengths), num_tags)
    emissions, tags = rng.normal(0, scale, shape), rng.integers(0, num_tags, shape[:2])
    chain = random_chain(rng, num_tags, scale)
    with pytest.MonkeyPatch.context() as patch:
        if is_log_space:
            patch.setattr(forward_backward, "MAX_LOG_AMPLIFICATION", -np.inf)
        check_against_enumeration(emissions, tags, lengths, chain, 1e-9)


@pytest.mark.parametrize("is_forbidden", ["some", "all", "the true ones"])
def test_forbidden_transitions(is_forbidden):
    rng = np.random.default_rng(4)
    chain, lengths = random_chain(rng, 3), np.array([5, 3, 1])
    tags = np.array([[0, 1, 2, 2, 0], [2, 2, 1, 0, 0], [1, 0, 0, 0, 0]])
    chosen = {
        "some": np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0]], bool),
        "all": np.ones((3, 3), bool),
        "the true ones": np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], bool),
    }[is_forbidden]
    chain.transitions[chosen] = -1e4
    check_against_enumeration(rng.normal(0, 2, (3, 5, 3)), tags, lengths, chain, 1e-7)


def test_a_path_that_underflows_and_comes_back():
    """e^-900 at token 0 is lost in float64, yet this path wins after three costly steps."""
    emissions = np.array([[[0.0, -900.0], [-400.0, 0.0], [-400.0, 0.0], [-400.0, 0.0]]])
    chain = Chain(np.array([[0.0, -2e3], [-2e3, 0.0]]), np.zeros(2), np.zeros(2))
    _, is_exact = forward_backward._scaled_marginals(emissions, np.array([4]), chain)
    assert not is_exact[0], "the scaled pass must know that it lost the winner"
    check_against_enumeration(emissions, np.array([[1, 1, 1, 1]]), np.array([4]), chain)
    assert marginals(emissions, [4], chain).unary[0, :, 1] == pytest.approx([1, 1, 1, 1])


@pytest.mark.parametrize("extreme", [1e4, 1e30, -1e30])
def test_finite_at_extreme_scores(extreme):
    rng = np.random.default_rng(2)
    emissions = rng.normal(0, 1, (3, 6, 4))
    emissions[0, 2, 1] = emissions[1, :, 0] = emissions[2] = extreme
    result = negative_log_likelihood(
        emissions, rng.integers(0, 4, (3, 6)), np.array([6, 4, 1]), random_chain(rng, 4, 1e4)
    )
    for field in result:
        assert np.isfinite(field).all()
    assert np.abs(result.emissions).max() <= 1 + 1e-9


def test_padding_and_neighbours_change_nothing():
    rng = np.random.default_rng(5)
    chain, lengths = random_chain(rng, 4), np.array([3, 2, 3])
    emissions, tags = rng.normal(size=(3, 3, 4)), rng.integers(0, 4, (3, 3))
    alone = negative_log_likelihood(emissions[1:2, :2], tags[1:2, :2], lengths[1:2], chain)
    emissions[1, 2], tags[1, 2] = np.nan, -1
    emissions[2, 0, 0] = np.nan
    together = negative_log_likelihood(emissions, tags, lengths, chain)
    assert np.isnan(together.loss).tolist() == [False, False, True]
    assert together.loss[1] == pytest.approx(alone.loss[0], rel=1e-14)
    np.testing.assert_allclose(together.emissions[1, :2], alone.emissions[0], atol=1e-14)
    np.testing.assert_allclose(together.transitions[1], alone.transitions[0], atol=1e-14)
    assert not together.emissions[1, 2].any()
