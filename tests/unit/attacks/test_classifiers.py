"""The paper's attack on made-up outputs."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support.membership import made_scores, made_signals

from edp_mx.attacks.classifiers import candidates, features_of, learn_classifier
from edp_mx.errors import UserError


@pytest.fixture(scope="module")
def learnt():
    """A classifier, and scores of another model that is as overfit."""
    generator = np.random.default_rng(11)
    shadow, target = (made_scores(generator, 150, gap=1.5) for _ in range(2))
    return learn_classifier(shadow.signals, shadow.labels, seed=0), shadow, target


def test_what_members_look_like_carries_over(learnt):
    classifier, _, target = learnt
    probabilities = classifier.probabilities(target.signals)
    assert roc_auc_score(target.labels, probabilities) > 0.75
    assert probabilities[target.labels].mean() > probabilities[~target.labels].mean() + 0.2


def test_the_column_is_that_of_true(learnt):
    classifier, _, target = learnt
    pipeline = classifier._pipeline
    says = pipeline.predict(features_of(target.signals))
    np.testing.assert_array_equal(classifier.probabilities(target.signals) > 0.5, says)
    assert list(pipeline.classes_) == [False, True]


def test_the_best_on_the_shadow_is_chosen(learnt):
    classifier, _, _ = learnt
    assert set(classifier.shadow_auc) == set(candidates(0))
    assert classifier.shadow_auc[classifier.name] == max(classifier.shadow_auc.values())


def test_the_same_seed_learns_the_same(learnt):
    classifier, shadow, target = learnt
    again = learn_classifier(shadow.signals, shadow.labels, seed=0)
    assert again.shadow_auc == classifier.shadow_auc
    np.testing.assert_allclose(
        again.probabilities(target.signals), classifier.probabilities(target.signals)
    )


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
