"""The attack of the paper: a classifier of members that is trained on the outputs of a shadow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from edp_mx.attacks.membership.roc import area, roc_curve
from edp_mx.attacks.membership.signals import Signals
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of

FOLDS = 5
LARGEST_LOG_ODDS = 20.0
LEAST_VARIANCE = 1e-12  # below which a feature counts as constant
MOST_ROWS = 20_000  # to train on: far more than 17 features need


@dataclass(frozen=True, eq=False)
class AttackClassifier:
    """Classifier that was chosen by its cross-validated AUC, and trained, on a shadow alone."""

    name: str
    shadow_auc: Dict[str, float]
    _model: Any

    def log_odds(self, signals: Signals) -> np.ndarray:
        """Return log p/(1 − p) of being a member, (U,); above 0 it says "member"."""
        return _log_odds_by(self._model, _finite_features(signals, "attacked model"))


class _Scaler(StandardScaler):
    """Scaler to mean 0 and variance 1; to 0 for features that are constant in training.

    The weights of a perceptron for such a feature stay random, and would add noise on a model where
    the feature varies.
    """

    def transform(self, X: np.ndarray, copy: Optional[bool] = None) -> np.ndarray:
        return np.where(self.var_ > LEAST_VARIANCE, super().transform(X, copy), 0.0)


def features_of(signals: Signals) -> np.ndarray:
    """Return the features of the paper: sorted intent and slot scores, for any label set.

    Probabilities become log-odds, cut at ±20: nearly all lie close to 1, and how close matters.

    Shapes: (U, 17): 5 of the intent, 10 of the tokens (the least sure ones), the best tag path's
    log-probability and its margin over the second best.
    Source: paper, "Sorted IC and NER output scores are used as features"; that only the largest
    are kept, so that corpora can be crossed: Salem et al. 2019, "ML-Leaks".
    """
    sorted_scores = np.concatenate([signals.intent_top, signals.slot_top], axis=1)  # (U, 15)
    with np.errstate(divide="ignore"):
        log_odds = np.log(sorted_scores) - np.log1p(-np.minimum(sorted_scores, 1.0))
    whole = [np.maximum(signals.sequence_score, -100.0), np.minimum(signals.sequence_margin, 100.0)]
    return np.column_stack([np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS), *whole])


def candidates(seed: int) -> Dict[str, Any]:
    """Return the kinds of classifiers to choose from, each with its scaling."""
    return {
        "logistic regression": make_pipeline(_Scaler(), LogisticRegression(max_iter=1000)),
        "multilayer perceptron": make_pipeline(
            _Scaler(),
            MLPClassifier((32,), alpha=1e-3, max_iter=60, early_stopping=True, random_state=seed),
        ),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=seed
        ),
    }


def learn_classifier(signals: Signals, is_member: np.ndarray, *, seed: int) -> AttackClassifier:
    """Choose the kind with the best cross-validated AUC on the shadow, and train it there.

    At least 10 members and 10 non-members are needed; of more than 20,000 utterances a random
    20,000 are used.

    Source: the structure is that of Shokri et al. 2017, as in the paper.
    """
    is_member = np.asarray(is_member, bool)
    features = _features_to_learn(signals, is_member)
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0xC1A5]))
    rows = generator.permutation(len(is_member))[:MOST_ROWS]
    features, labels = features[rows], is_member[rows]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    kinds = candidates(seed)
    with threadpool_limits(1):  # small matrices: threads would only wait for each other
        found = {name: _shadow_auc(kind, features, labels, folds) for name, kind in kinds.items()}
        auc = {name: value for name, value in found.items() if math.isfinite(value)}
        if not auc:
            raise UserError(
                "no classifier could be trained on the outputs of the shadow: train it with a "
                "smaller training.learning_rate, or name another run"
            )
        best = max(auc, key=lambda name: auc[name])
        model = kinds[best].fit(features, labels)
    assert list(model.classes_) == [False, True], model.classes_  # log-odds are of the second
    return AttackClassifier(best, auc, model)


def _features_to_learn(signals: Signals, is_member: np.ndarray) -> np.ndarray:
    """Return the features of the shadow, (U, 17), if a classifier can learn from them."""
    if min(is_member.sum(), (~is_member).sum()) < 2 * FOLDS:
        raise UserError(
            f"the shadow has {count_of(is_member.sum(), 'member')} and "
            f"{count_of((~is_member).sum(), 'non-member')}; "
            f"the attack needs at least {2 * FOLDS} of each"
        )
    features = _finite_features(signals, "shadow")
    if features.var(axis=0).max() <= LEAST_VARIANCE:
        raise UserError(
            f"the shadow has the same outputs for all {len(features)} utterances, so it has "
            "probably diverged: train it with a smaller training.learning_rate, or name another run"
        )
    return features


def _finite_features(signals: Signals, whose: str) -> np.ndarray:
    """Return the features, (U, 17), if all are finite."""
    features = features_of(signals)
    broken = int((~np.isfinite(features)).any(axis=1).sum())
    if broken:
        raise UserError(
            f"the {whose} has diverged (its outputs for {broken} of {len(features)} utterances are "
            "not finite): train it anew with a smaller training.learning_rate, or name another run"
        )
    return features


def _shadow_auc(kind: Any, features: np.ndarray, labels: np.ndarray, folds: Any) -> float:
    """Return the mean AUC over the folds; NaN for a kind that cannot be trained on one of them."""

    def score(model: Any, features: np.ndarray, labels: np.ndarray) -> float:
        return area(roc_curve(_log_odds_by(model, features), labels))

    try:
        found = cross_val_score(
            kind, features, labels, cv=folds, scoring=score, error_score="raise"
        )
        return float(found.mean())
    except (UserError, ValueError):
        return math.nan


def _log_odds_by(model: Any, features: np.ndarray) -> np.ndarray:
    """Return log p/(1 − p) (U,), not from p, which runs out of digits close to 1."""
    if hasattr(model, "decision_function"):
        return model.decision_function(features)
    perceptron, hidden = model[-1], model[:-1].transform(features)  # (U, F)
    assert perceptron.activation == "relu" and perceptron.out_activation_ == "logistic"
    *layers, (weights, shift) = zip(perceptron.coefs_, perceptron.intercepts_)
    for inner, inner_shift in layers:
        hidden = np.maximum(hidden @ inner + inner_shift, 0.0)  # (U, units)
    return (hidden @ weights + shift)[:, 0]  # (U,)
