"""Threshold attacks on made-up losses, and the calibration by intent by hand."""

from dataclasses import replace

import numpy as np
import pytest
from support.membership import made_scores

from edp_mx.attacks.membership.roc import area, measure, roc_curve
from edp_mx.attacks.membership.thresholds import PRIOR_WEIGHT, threshold_attacks, usual_losses


def by_name(scores):
    return {one.name: one for one in threshold_attacks(scores)}


def test_an_overfit_model_is_seen_through_and_a_blind_one_is_not(generator):
    overfit = by_name(made_scores(generator, 500, gap=2.5))["loss"]
    labels = np.arange(1000) < 500
    assert measure(overfit.scores, labels, seed=0).auc.value > 0.9
    blind = by_name(made_scores(generator, 2000, gap=0.0))["loss"]
    auc = measure(blind.scores, np.arange(4000) < 2000, seed=0).auc
    _, low, high = auc  # 3.92 standard errors wide
    assert abs(auc.value - 0.5) < 1.6 * (high - low)


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
