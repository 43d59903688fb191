"""The paper's attack: a classifier that learned on a shadow model what members look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from edp_mx.attacks.signals import Signals
from edp_mx.errors import UserError

FOLDS = 5
LARGEST_LOG_ODDS = 20.0
MOST_ROWS = 20_000  # to learn from: far more than 17 features need


@dataclass(frozen=True, eq=False)
class AttackClassifier:
    """A classifier that was chosen and trained on a shadow's outputs alone.

    Attributes:
        name: of the kind that was chosen.
        shadow_auc: kind -> its cross-validated AUC on the shadow, mean over the folds.
    """

    name: str
    shadow_auc: Dict[str, float]
    _pipeline: Any

    def probabilities(self, signals: Signals) -> np.ndarray:
        """Chance of being a member, (U,): the column of `True`, whichever that is."""
        column = list(self._pipeline.classes_).index(True)
        return self._pipeline.predict_proba(features_of(signals))[:, column]


def features_of(signals: Signals) -> np.ndarray:
    """The paper's features: sorted intent and slot scores, of the same length for all label sets.

    Probabilities become log-odds, cut at ±20: nearly all lie next to 1, and how near is what tells.

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
    """The kinds to choose from, each with its own preparation."""

    def scaled(model: Any) -> Any:
        return make_pipeline(VarianceThreshold(1e-12), StandardScaler(), model)

    return {
        "logistic regression": scaled(LogisticRegression(max_iter=1000)),
        "multilayer perceptron": scaled(
            MLPClassifier((32,), alpha=1e-3, max_iter=60, early_stopping=True, random_state=seed)
        ),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=seed
        ),
    }


def learn_classifier(signals: Signals, is_member: np.ndarray, *, seed: int) -> AttackClassifier:
    """Chooses the kind with the best cross-validated AUC on the shadow, and trains it there.

    Args:
        signals, is_member: of the shadow's members and non-members.

    Raises:
        UserError: fewer than 5 members or non-members.

    Edge cases: of more than 20,000 utterances so many are drawn.

    Source: the structure is that of Shokri et al. 2017, as in the paper.
    """
    is_member = np.asarray(is_member, bool)
    if min(is_member.sum(), (~is_member).sum()) < 2 * FOLDS:
        raise UserError(
            f"the shadow has {is_member.sum()} members and {(~is_member).sum()} non-members; "
            f"{2 * FOLDS} of each are the least to learn from"
        )
    features = features_of(signals)
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0xC1A5]))
    rows = generator.permutation(len(is_member))[:MOST_ROWS]
    features, labels = features[rows], is_member[rows]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    kinds = candidates(seed)
    with threadpool_limits(1):  # small matrices: threads would only wait for each other
        auc = {
            name: float(cross_val_score(kind, features, labels, cv=folds, scoring="roc_auc").mean())
            for name, kind in kinds.items()
        }
        best = max(auc, key=lambda name: auc[name])
        pipeline = kinds[best].fit(features, labels)
    assert list(pipeline.classes_) == [False, True], pipeline.classes_
    return AttackClassifier(best, auc, pipeline)
