"""ROC numbers against scikit-learn, against counting by hand, and against what they must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_curve

from edp_mx.attacks.membership.roc import area, measure, roc_curve, tpr_within
from edp_mx.errors import UserError

CASES = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 6), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda b: any(b) and not all(b)),
    )
)


@given(CASES)
def test_area_and_points_are_scikit_learns(case):
    scores, is_member = np.array(case[0], float), np.array(case[1])
    curve = roc_curve(scores, is_member)
    fpr, tpr, thresholds = sklearn_curve(is_member, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr)
    np.testing.assert_allclose(curve.tpr, tpr)
    np.testing.assert_array_equal(curve.thresholds[1:], thresholds[1:])
    assert area(curve) == pytest.approx(roc_auc_score(is_member, scores))
    for limit in (0.0, 0.001, 0.2, 0.5, 1.0):
        assert tpr_within(curve, limit) == tpr[fpr <= limit].max()


def test_tpr_at_a_small_fpr_by_hand():
    # 1,000 non-members 0 … 999; members: ten above all, twenty above all but five, the rest below
    scores = np.concatenate([np.arange(1000.0), [2000.0] * 10, [994.5] * 20, [-1.0] * 70])
    is_member = np.arange(len(scores)) >= 1000
    success = measure(scores, is_member, seed=0, threshold=994.0)
    assert success.tpr_at_fpr[0.001].value == pytest.approx(0.1)
    assert success.tpr_at_fpr[0.01].value == pytest.approx(0.3)
    assert success.balanced_accuracy == pytest.approx((0.3 + 0.995) / 2)
    assert success.best_balanced_accuracy == pytest.approx((0.3 + 0.995) / 2)
    assert (success.members, success.non_members) == (100, 1000)


@pytest.mark.parametrize(
    "gap, size, true, number",
    [
        (0.5, 100, norm.cdf(0.5 / np.sqrt(2)), lambda success: success.auc),
        (1.0, 800, norm.sf(norm.isf(0.01) - 1.0), lambda success: success.tpr_at_fpr[0.01]),
    ],
    ids=["AUC", "TPR at 1 %"],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(gap, size, true, number, generator):
    held, is_member = 0, np.arange(2 * size) < size
    for trial in range(60):
        scores = generator.normal(gap * is_member, 1)
        success = measure(scores, is_member, seed=trial, draws=200, confidence=0.9)
        _, low, high = number(success)
        held += low <= true <= high
    assert 44 <= held <= 60  # 54 expected; 4.3 standard deviations


def test_the_same_seed_gives_the_same_intervals(generator):
    scores, is_member = generator.normal(size=60), np.arange(60) < 30
    first, again = (measure(scores, is_member, seed=5, draws=50) for _ in range(2))
    assert first == again
    assert measure(scores, is_member, seed=6, draws=50) != first


def test_infinite_scores_are_ranked_and_nan_is_refused():
    is_member = np.array([True, True, False, False])
    assert measure(np.array([np.inf, 1, 0, -np.inf]), is_member, seed=0).auc.value == 1.0
    with pytest.raises(UserError, match="1 scores are NaN"):
        measure(np.array([np.nan, 1, 0, 0]), is_member, seed=0)
    with pytest.raises(UserError, match="there are no non-members"):
        roc_curve(np.zeros(2), np.array([True, True]))
    with pytest.raises(UserError, match="there are no members"):
        roc_curve(np.zeros(2), np.array([False, False]))
