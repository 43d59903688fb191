"""LiRA on a Gaussian world, where everything has a closed form."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from support.membership import made_scores
from support.refusals import one_sentence

from edp_mx.attacks.membership.lira.likelihood import (
    Worlds,
    aligned,
    draw_further,
    draw_halves,
    linear_scores,
    lira_attacks,
    offline_scores,
    online_scores,
    worlds_of,
)
from edp_mx.attacks.membership.roc import area, roc_curve
from edp_mx.errors import UserError

UTTERANCES, GAP, SPREAD = 2000, 1.5, 0.8


def gaussian_world(generator, shadows):
    """Log-odds N(base + gap·in, spread²), each utterance with its own base."""
    is_in = draw_halves(UTTERANCES, shadows, seed=int(generator.integers(1 << 30)))
    is_member = generator.random(UTTERANCES) < 0.5
    base = generator.normal(0, 5, UTTERANCES)

    def draw(inside):
        return generator.normal(base + GAP * inside, SPREAD)

    log_odds = np.stack([draw(column) for column in is_in.T], axis=1)
    return log_odds, is_in, draw(is_member), is_member


def test_each_utterance_is_in_half_of_the_shadows():
    halves = draw_halves(500, 16, seed=1)
    assert (halves.sum(axis=1) == 8).all()
    assert halves.sum(axis=0).min() > 200 and halves.sum(axis=0).max() < 300
    np.testing.assert_array_equal(halves, draw_halves(500, 16, seed=1))
    assert (halves != draw_halves(500, 16, seed=2)).any()
    together = np.corrcoef(halves.T.astype(float))[np.triu_indices(16, 1)]
    assert together.mean() == pytest.approx(-1 / 15, abs=0.02)  # half of each row is in
    one_sentence("must be 4 or more", draw_halves, 10, 3, seed=0)


def test_others_are_drawn_each_by_itself():
    drawn = draw_further(4000, 8, share=0.3, seed=1)
    assert drawn.shape == (4000, 8) and drawn.mean() == pytest.approx(0.3, abs=0.015)
    together = np.corrcoef(drawn.T.astype(float))[np.triu_indices(8, 1)]
    assert abs(together).max() < 0.07
    assert (
        draw_further(5, 4, share=1.0, seed=1).all()
        and not draw_further(5, 4, share=0, seed=1).any()
    )


def test_the_offline_rank_has_nothing_of_the_shadows_with_an_utterance(generator):
    log_odds, is_in, target, _ = gaussian_world(generator, 8)
    moved = np.where(is_in, generator.normal(50, 9, log_odds.shape), log_odds)
    ranks = [
        offline_scores(target, worlds_of(shadows, is_in)).argsort() for shadows in (log_odds, moved)
    ]
    np.testing.assert_array_equal(*ranks)


def test_many_shadows_reach_the_closed_form(generator):
    log_odds, is_in, target, is_member = gaussian_world(generator, 256)
    worlds = worlds_of(log_odds, is_in)
    # d = gap / spread standard deviations apart: the best test has AUC Φ(d / √2)
    best = norm.cdf(GAP / SPREAD / math.sqrt(2))
    for scores in (online_scores(target, worlds), offline_scores(target, worlds)):
        assert area(roc_curve(scores, is_member)) == pytest.approx(best, abs=0.03)
    assert worlds.stddev_in.mean() == pytest.approx(SPREAD, rel=0.03)
    assert (worlds.mean_in - worlds.mean_out).mean() == pytest.approx(GAP, rel=0.05)
    # a global threshold drowns in what utterances differ by
    assert area(roc_curve(target, is_member)) < 0.7


@pytest.mark.parametrize("varies", [False, True])
def test_a_variance_lies_between_an_utterances_own_and_that_of_all(generator, varies):
    """Of six shadows; the oracle is how far each estimate is from the truth."""
    is_in = draw_halves(UTTERANCES, 6, seed=1)
    true = generator.uniform(0.2, 2.0, UTTERANCES) if varies else np.full(UTTERANCES, SPREAD)
    log_odds = generator.normal(0, true[:, None], is_in.shape)
    found = worlds_of(log_odds, is_in).stddev_in ** 2
    own = np.array([row[into].var(ddof=1) for row, into in zip(log_odds, is_in)])
    np.testing.assert_allclose(found, (8 * own.mean() + 2 * own) / 10)  # 3 with it: 2 are free
    errors = [abs(each - true**2).mean() for each in (found, own, np.full_like(own, own.mean()))]
    assert errors[0] < errors[1]
    assert (errors[0] < errors[2]) == varies


def test_a_run_that_is_less_certain_than_its_shadows_is_aligned_with_them(generator):
    """As after noisy gradients: half as certain, and less the more certain. Oracle: undone."""
    log_odds, is_in, target, is_member = gaussian_world(generator, 16)
    worlds = worlds_of(log_odds, is_in)
    bent = np.where(target > 0, target / 2, target * 1.5) - 3.0

    def success(outputs):
        return area(roc_curve(linear_scores(outputs, worlds), is_member))

    plain, undone, found = map(success, (bent, target, aligned(bent, worlds)))
    assert found > plain + 0.1 and found > undone - 0.05
    assert success(aligned(target, worlds)) == pytest.approx(undone, abs=0.01)  # no harm


def test_outputs_that_are_less_spread_with_an_utterance_are_told_by_that(generator):
    """As after overfitting: alike with it, anything without. Oracle: the true densities."""
    place, narrow, wide = np.array([1.0, 0.0]), 0.4, 4.0
    is_in = draw_halves(UTTERANCES, 8, seed=3)
    is_member = np.arange(UTTERANCES) < UTTERANCES // 2
    base = generator.normal(0, 5, UTTERANCES)

    def draw(inside):
        stddev = np.where(inside, narrow, wide)
        return base + generator.normal(place[1 - inside.astype(int)], stddev)

    log_odds = np.stack([draw(column) for column in is_in.T], axis=1)
    target = draw(is_member)
    worlds = worlds_of(log_odds, is_in)
    assert np.sqrt((worlds.stddev_in**2).mean()) == pytest.approx(narrow, rel=0.05)
    assert np.sqrt((worlds.stddev_out**2).mean()) == pytest.approx(wide, rel=0.05)
    known = norm.logpdf(target, base + 1, narrow) - norm.logpdf(target, base, wide)
    best = area(roc_curve(known, is_member))
    online, linear = (
        area(roc_curve(scores(target, worlds), is_member))
        for scores in (online_scores, linear_scores)
    )
    assert best > 0.9 and online > best - 0.05 > linear + 0.1


def test_one_spread_is_the_ratio_of_two_gaussians_that_have_it(generator):
    ins, outs = generator.normal(1, 1, 50), generator.normal(-1, 1, 50)
    spread = generator.uniform(0.1, 2, 50)  # of each utterance
    target = generator.normal(0, 3, 50)
    ratio = norm.logpdf(target, ins, spread) - norm.logpdf(target, outs, spread)
    with_it, without = 0.6 * spread, np.sqrt(2 - 0.36) * spread  # whose variances have this mean
    np.testing.assert_allclose(linear_scores(target, Worlds(ins, with_it, outs, without)), ratio)


def test_the_online_score_is_the_log_of_the_ratio_of_densities(generator):
    worlds = Worlds(*(np.abs(generator.normal(2, 1, 50)) + 0.1 for _ in range(4)))
    target = generator.normal(0, 3, 50)
    expected = norm.logpdf(target, worlds.mean_in, worlds.stddev_in) - norm.logpdf(
        target, worlds.mean_out, worlds.stddev_out
    )
    np.testing.assert_allclose(online_scores(target, worlds), expected)
    above = norm.logsf(offline_scores(target, worlds))
    np.testing.assert_allclose(above, norm.logsf(target, worlds.mean_out, worlds.stddev_out))


def test_what_cannot_be_compared_is_refused():
    one_sided = np.array([[True, True, True, False]])
    with pytest.raises(UserError, match="two shadow models with it and two without"):
        worlds_of(np.zeros((1, 4)), one_sided)
    one_sentence("has diverged", worlds_of, np.full((1, 4), np.nan), one_sided)


def test_all_attacks_of_one_target(generator):
    scores = made_scores(generator, 100, gap=2.5, reference=30)
    is_in = draw_halves(200, 8, seed=0)
    shadow = [made_scores(generator, 100, gap=0.0).signals.log_odds for _ in range(8)]
    log_odds = np.stack(shadow, axis=1) + 2.0 * is_in
    losses = np.log1p(np.exp(-log_odds))
    found = {one.name: one.scores for one in lira_attacks(scores, log_odds, losses, is_in)}
    worlds = worlds_of(log_odds, is_in)
    target = scores.signals.log_odds[:200]
    in_line = linear_scores(aligned(target, worlds), worlds)
    np.testing.assert_allclose(found["LiRA online, aligned"], in_line)
    np.testing.assert_allclose(found["LiRA online"], online_scores(target, worlds))
    np.testing.assert_allclose(found["LiRA offline"], offline_scores(target, worlds))
    usual = [losses[i, ~is_in[i]].mean() for i in range(200)]
    calibrated = found["loss calibrated by shadows"]
    np.testing.assert_allclose(calibrated, usual - scores.signals.loss[:200])
    for scored in found.values():
        assert area(roc_curve(scored, scores.labels)) > 0.7
