"""ROC numbers against scikit-learn and by hand, and threshold attacks on made-up losses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_curve
from support.membership import made_scores
from support.refusals import one_sentence

from edp_mx.attacks.membership.roc import area, measure, roc_curve, tpr_within
from edp_mx.attacks.membership.thresholds import PRIOR_WEIGHT, threshold_attacks, usual_losses

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
    assert success.tpr_at_fpr["0.001"].value == pytest.approx(0.1)
    assert success.tpr_at_fpr["0.01"].value == pytest.approx(0.3)
    assert success.balanced_accuracy == pytest.approx((0.3 + 0.995) / 2)
    assert success.best_balanced_accuracy == pytest.approx((0.3 + 0.995) / 2)
    assert (success.members, success.non_members) == (100, 1000)


@pytest.mark.parametrize(
    "gap, size, true, number",
    [
        (0.5, 100, norm.cdf(0.5 / np.sqrt(2)), lambda success: success.auc),
        (1.0, 800, norm.sf(norm.isf(0.01) - 1.0), lambda success: success.tpr_at_fpr["0.01"]),
    ],
    ids=["AUC", "TPR at 1 %"],
)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(gap, size, true, number, generator):
    held, is_member = 0, np.arange(2 * size) < size
    for trial in range(60):
        scores = generator.normal(gap * is_member, 1)
        success = measure(scores, is_member, seed=trial, draws=200, confidence=0.9)
        found = number(success)
        held += found.low <= true <= found.high
    assert 44 <= held <= 60  # 54 expected; 4.3 standard deviations


def test_the_same_seed_gives_the_same_intervals(generator):
    scores, is_member = generator.normal(size=60), np.arange(60) < 30
    first, again = (measure(scores, is_member, seed=5, draws=50) for _ in range(2))
    assert first == again
    assert measure(scores, is_member, seed=6, draws=50) != first


def test_infinite_scores_are_ranked_and_nan_is_refused():
    is_member = np.array([True, True, False, False])
    assert measure(np.array([np.inf, 1, 0, -np.inf]), is_member, seed=0).auc.value == 1.0
    one_sentence("1 scores are NaN", measure, np.array([np.nan, 1, 0, 0]), is_member, seed=0)
    one_sentence("there are no non-members", roc_curve, np.zeros(2), np.array([True, True]))
    one_sentence("there are no members", roc_curve, np.zeros(2), np.array([False, False]))


def by_name(scores):
    return {one.name: one for one in threshold_attacks(scores)}


def test_an_overfit_model_is_seen_through_and_a_blind_one_is_not(generator):
    overfit = by_name(made_scores(generator, 500, gap=2.5))["loss"]
    labels = np.arange(1000) < 500
    assert measure(overfit.scores, labels, seed=0).auc.value > 0.9
    blind = by_name(made_scores(generator, 2000, gap=0.0))["loss"]
    auc = measure(blind.scores, np.arange(4000) < 2000, seed=0).auc
    # The interval is 3.92 standard errors wide.
    assert abs(auc.value - 0.5) < 1.6 * (auc.high - auc.low)


def test_the_loss_is_ranked_as_it_is_and_yeoms_threshold_is_the_members_mean(generator):
    scores = made_scores(generator, 50, gap=1.0)
    loss = by_name(scores)["loss"]
    np.testing.assert_array_equal(loss.scores, -scores.signals.loss)
    says_member = scores.signals.loss < scores.signals.loss[:50].mean()
    np.testing.assert_array_equal(loss.scores > loss.threshold, says_member)


def test_usual_losses_by_hand():
    losses, intents = np.array([1.0, 2.0, 9.0]), ["a", "a", "b"]
    overall = 4.0
    expected = [
        (3.0 + PRIOR_WEIGHT * overall) / (2 + PRIOR_WEIGHT),
        (9.0 + PRIOR_WEIGHT * overall) / (1 + PRIOR_WEIGHT),
        overall,
    ]
    assert usual_losses(losses, intents, ["a", "b", "c"]) == pytest.approx(expected)


def test_calibration_helps_where_intents_differ_in_difficulty(generator):
    scores = made_scores(generator, 400, gap=0.5, reference=400)
    hard = np.array([intent == "play" for intent in scores.intents])
    loss = scores.signals.loss + 3.0 * hard
    object.__setattr__(scores, "signals", scores.signals._replace(loss=loss))
    found = by_name(scores)
    plain, calibrated = (
        area(roc_curve(found[name].scores, scores.labels))
        for name in ("loss", "loss calibrated by intent")
    )
    assert calibrated > plain + 0.03
    assert "loss calibrated by intent" not in by_name(made_scores(generator, 5, gap=1.0))


def test_words_alone_by_hand(generator):
    """A third of the strangers have an unknown word: each is told, all else is a tie."""
    unknown = np.zeros(60, np.int64)
    unknown[30:40] = np.arange(1, 11)
    scores = replace(made_scores(generator, 30, gap=0.0), unknown_words=unknown)
    words = by_name(scores)["words alone"]
    success = measure(words.scores, scores.labels, seed=0, threshold=words.threshold, draws=10)
    assert success.auc.value == pytest.approx((1 / 3) * 1 + (2 / 3) * 0.5)
    assert success.balanced_accuracy == pytest.approx((1 + 1 / 3) / 2)
    assert "words alone" not in by_name(made_scores(generator, 5, gap=1.0))
