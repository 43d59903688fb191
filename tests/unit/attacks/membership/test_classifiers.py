"""The paper's attack, from made-up outputs to what it leaves behind."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from support.membership import made_scores, made_signals
from support.refusals import one_sentence

from edp_mx.attacks.directory import read_guesses
from edp_mx.attacks.membership import classifiers
from edp_mx.attacks.membership.classifiers import candidates, features_of, learn_classifier
from edp_mx.attacks.membership.roc import measure
from edp_mx.attacks.membership.shadow_attack import attack_by_shadow
from edp_mx.config import dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory


@pytest.fixture(scope="module")
def learnt():
    """A classifier, and scores of another model that is as overfit."""
    generator = np.random.default_rng(11)
    shadow, target = (made_scores(generator, 150, gap=1.5) for _ in range(2))
    return learn_classifier(shadow.signals, shadow.labels, seed=0), shadow, target


@pytest.fixture(params=sorted(candidates(0)))
def only(request, monkeypatch):
    """The name of the one kind that can be chosen."""
    kinds = {request.param: candidates(0)[request.param]}
    monkeypatch.setattr(classifiers, "candidates", lambda seed: kinds)
    return request.param


def with_margins(signals, margins):
    """The same outputs but for the best path's margin over the second best."""
    return signals._replace(sequence_margin=margins)


def test_the_best_on_the_shadow_is_chosen_and_carries_over(learnt):
    classifier, shadow, target = learnt
    assert set(classifier.shadow_auc) == set(candidates(0))
    assert classifier.shadow_auc[classifier.name] == max(classifier.shadow_auc.values())
    log_odds = classifier.log_odds(target.signals)
    again = learn_classifier(shadow.signals, shadow.labels, seed=0)
    np.testing.assert_allclose(again.log_odds(target.signals), log_odds)
    assert roc_auc_score(target.labels, log_odds) > 0.75
    assert log_odds[target.labels].mean() > log_odds[~target.labels].mean() + 0.5


def test_log_odds_are_those_of_the_probability_of_a_member(only, learnt):
    _, shadow, target = learnt
    classifier = learn_classifier(shadow.signals, shadow.labels, seed=0)
    assert classifier.name == only and list(classifier._model.classes_) == [False, True]
    log_odds = classifier.log_odds(target.signals)
    features = features_of(target.signals)
    p = classifier._model.predict_proba(features)[:, 1]  # scikit-learn's own
    inside = (p > 1e-6) & (p < 1 - 1e-6)
    assert inside.sum() > 250
    np.testing.assert_allclose(log_odds[inside], (np.log(p) - np.log1p(-p))[inside], rtol=1e-6)
    np.testing.assert_array_equal(log_odds > 0, classifier._model.predict(features))


def test_utterances_beyond_all_that_the_shadow_saw_are_told_apart(only, generator):
    """A shadow that learned less than the run: the run is surer of all than it of anything."""
    is_member = np.arange(600) % 2 == 0
    shadow = with_margins(
        made_signals(generator, is_member, gap=0.0), generator.normal(0.1 + 0.05 * is_member, 0.02)
    )
    target = with_margins(
        made_signals(generator, is_member, gap=0.0), generator.normal(20 + 10.0 * is_member, 5.0)
    )
    classifier = learn_classifier(shadow, is_member, seed=0)
    p = classifier._model.predict_proba(features_of(target))[:, 1]
    log_odds = classifier.log_odds(target)
    assert np.isfinite(log_odds).all() and log_odds.mean() > 0
    if only == "gradient boosting":  # beyond the last split all is one leaf, with no way round
        return
    assert (p == 1).sum() > 500 and len(np.unique(log_odds)) == 600
    success = measure(log_odds, is_member, seed=0)
    assert success.tpr_at_fpr["0.01"].value > 0.1  # of p it is 0
    assert success.auc.value > 0.85


def test_what_never_varied_in_the_shadow_has_no_say(only, generator):
    is_member = np.arange(400) % 2 == 0
    shadow, target = (made_signals(generator, is_member, gap=1.0) for _ in range(2))
    classifier = learn_classifier(with_margins(shadow, np.full(400, 3.0)), is_member, seed=0)
    one, other = (
        classifier.log_odds(with_margins(target, margins))
        for margins in (np.full(400, 3.0), generator.uniform(0, 100, 400))
    )
    np.testing.assert_array_equal(one, other)


def test_features_see_no_label_and_are_finite(generator):
    is_member = np.arange(20) < 10
    signals = made_signals(generator, is_member, gap=1.0)
    edge = signals._replace(
        intent_top=np.tile([1.0, 0.0, 0.0, 0.0, 0.0], (20, 1)),
        slot_top=np.ones((20, 10)),
        sequence_margin=np.full(20, np.inf),
        sequence_score=np.full(20, -1e9),
    )
    features = features_of(edge)
    assert features.shape == (20, 17) and np.isfinite(features).all()
    assert np.ptp(features, axis=0).max() == 0
    labelled = [name for name in signals._fields if name.startswith(("intent_l", "slot_l", "lo"))]
    blank = signals._replace(**{name: np.zeros(20) for name in labelled})
    np.testing.assert_array_equal(features_of(blank), features_of(signals))


def test_too_few_are_refused(generator):
    is_member = np.arange(12) < 4
    with pytest.raises(UserError, match="the shadow has 4 members and 8 non-members"):
        learn_classifier(made_signals(generator, is_member, gap=1.0), is_member, seed=0)


@pytest.mark.parametrize("rows", [1, 300])
def test_models_that_have_diverged_are_refused(learnt, rows):
    classifier, shadow, target = learnt
    broken = [
        one.signals._replace(slot_top=np.where(np.arange(300)[:, None] < rows, np.nan, 0.5))
        for one in (shadow, target)
    ]
    with pytest.raises(UserError, match=f"the shadow has diverged .* {rows} of 300 .*: train it"):
        learn_classifier(broken[0], shadow.labels, seed=0)
    one_sentence(f"attacked model has diverged .* {rows} of 300", classifier.log_odds, broken[1])


def test_a_shadow_that_says_the_same_of_all_is_refused_and_nearly_the_same_is_no_help(learnt):
    """As one that was trained with a rate of 10,000: a fold may have nothing that varies."""
    _, shadow, target = learnt
    arrays = shadow.signals._asdict().items()
    same = shadow.signals._replace(
        **{name: np.repeat(array[:1], 300, axis=0) for name, array in arrays}
    )
    with pytest.raises(UserError, match="same outputs for all 300 utterances, .* train it with a"):
        learn_classifier(same, shadow.labels, seed=0)
    same.sequence_margin[0] += 1.0
    classifier = learn_classifier(same, shadow.labels, seed=0)
    assert all(0.4 < auc < 0.6 for auc in classifier.shadow_auc.values())
    assert np.isfinite(classifier.log_odds(target.signals)).all()


def test_kinds_that_cannot_be_trained_are_left_out(learnt, monkeypatch):
    _, shadow, _ = learnt
    kinds, broken = candidates(0), candidates(0)["logistic regression"]
    broken.set_params(logisticregression__C=np.nan)
    kinds["multilayer perceptron"] = broken
    monkeypatch.setattr(classifiers, "candidates", lambda seed: kinds)
    classifier = learn_classifier(shadow.signals, shadow.labels, seed=0)
    assert set(classifier.shadow_auc) == {"logistic regression", "gradient boosting"}
    monkeypatch.setattr(classifiers, "candidates", lambda seed: {"logistic regression": broken})
    with pytest.raises(UserError, match="no classifier could be trained .* smaller training"):
        learn_classifier(shadow.signals, shadow.labels, seed=0)


ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def sides(generator, tmp_path):
    """A run and its shadow on another corpus, with outputs as if both were overfit."""
    found = []
    for name, weights in (("atis_clc", "a"), ("snips_clc", "b")):
        run = RunDirectory(tmp_path / name)
        run.create(name, dump_config(load_config(ROOT / "configs" / f"{name}.yaml")))
        run.write("environment", {"num_workers": 1})
        found.append((run.path, made_scores(generator, 150, gap=1.5, weights=weights * 64)))
    return found


def attacked(sides):
    (path, scores), (shadow_path, shadow) = sides
    return attack_by_shadow(path, scores, shadow_path=shadow_path, shadow=shadow)


def test_what_lies_above_the_threshold_is_called_a_member(sides):
    outcome = attacked(sides)
    guessed = read_guesses(sides[0][0] / "attack-shadow")
    log_odds = guessed.scores["shadow classifier"]
    assert log_odds.min() < 0 and log_odds.max() > 1  # probabilities are neither
    (result,) = outcome["results"]
    expected = balanced_accuracy_score(guessed.is_member, log_odds > 0)
    assert result["balanced_accuracy"] == pytest.approx(expected) and expected > 0.65
    assert result["auc"]["value"] > 0.75 and result["says"].startswith("log-odds by")


@pytest.mark.parametrize("side", [0, 1])
def test_one_that_has_diverged_changes_nothing(sides, side):
    attacked(sides)
    folder = sides[0][0] / "attack-shadow"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    path, scores = sides[side]
    top = np.full_like(scores.signals.slot_top, np.nan)
    sides[side] = path, replace(scores, signals=scores.signals._replace(slot_top=top))
    one_sentence(r"has diverged \(its outputs for 300 of 300 utterances", attacked, sides)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
