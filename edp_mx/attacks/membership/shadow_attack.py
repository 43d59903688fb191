"""The paper's attack on a finished run, and the attacks that need no other model."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Tuple

from edp_mx.attacks.directory import Outcome, write_outcome
from edp_mx.attacks.membership.classifiers import learn_classifier
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.membership.signals import Signals
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.attacks.settings_differences import shadow_run_facts
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.synthetic import STANDINS
from edp_mx.data.vocabulary import LabelsConfig, VocabularyConfig
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

# Whose shadow is trained on what, unless another is named.
OTHER_CORPUS = {
    "atis": "snips",
    "snips": "atis",
    "nlu_eval": "snips",
    "communication": "health",
    "health": "video",
    "video": "communication",
}
MOST_DEVIATIONS = 8.0  # between two splits that know nothing of each other


def attack_by_threshold(path: Path, scores: MembershipScores) -> Outcome:
    """All attacks that need nothing but the run."""
    run, seed = RunDirectory.existing(path), scores.origin.seed
    return write_outcome(run, "threshold", threshold_attacks(scores), scores, seed=seed, facts={})


def attack_by_shadow(
    path: Path, scores: MembershipScores, *, shadow_path: Path, shadow: MembershipScores
) -> Outcome:
    """The paper's attack: learned on a shadow's outputs, tried on the run's.

    Args:
        scores: of the run, whose membership labels serve to measure and for nothing else.
        shadow: of the shadow run at `shadow_path`.

    Raises:
        UserError: the shadow is the run itself, was trained on the run's own members, or has too
            few; or one of the two has diverged.
    """
    if shadow.origin.weights == scores.origin.weights:
        raise UserError(
            f"--shadow {shadow_path} has the weights of the attacked run: the attack would be told "
            "who is a member; name another run"
        )
    if _source_of(path) == _source_of(shadow_path):
        _check_apart(scores, shadow, shadow_path)
    seed = scores.origin.seed
    judged = shadow.is_judged
    classifier = learn_classifier(_rows(shadow.signals, judged), shadow.labels, seed=seed)
    guesses = Guesses(
        "shadow classifier",
        f"log-odds by {classifier.name}, which did best in cross-validation on the shadow",
        classifier.log_odds(_rows(scores.signals, scores.is_judged)),
        threshold=0.0,
    )
    facts: Dict[str, Any] = {
        "shadow": shadow_path.resolve().name,
        "shadow corpus": shadow.origin.corpus,
        "shadow weights": shadow.origin.weights,
        "workers of the run": RunDirectory(path).read("environment")["num_workers"],
        "workers of the shadow": RunDirectory(shadow_path).read("environment")["num_workers"],
        "shadow members": int(shadow.labels.sum()),
        **shadow_run_facts(RunDirectory(path), RunDirectory(shadow_path)),
        "classifier": classifier.name,
        **{f"shadow AUC, {name}": auc for name, auc in classifier.shadow_auc.items()},
    }
    run = RunDirectory.existing(path)
    return write_outcome(run, "shadow", [guesses], scores, seed=seed, facts=facts)


def _source_of(path: Path) -> Tuple[Any, ...]:
    """Where a run's utterances come from."""
    data = load_config(RunDirectory.existing(path).config).data
    return data.corpus, data.path, data.layout


def _check_apart(scores: MembershipScores, shadow: MembershipScores, shadow_path: Path) -> None:
    """Refuses a shadow from which the attack would learn who is a member of the run.

    On the same utterances it must have a split of its own. Then half of those that are judged in
    both are on the same side, as near as chance has it.
    """
    sides = dict(zip(_judged_ids(scores), scores.labels.tolist()))
    others = dict(zip(_judged_ids(shadow), shadow.labels.tolist()))
    shared = sides.keys() & others.keys()
    agreeing = sum(sides[name] == others[name] for name in shared)
    if abs(agreeing - len(shared) / 2) > MOST_DEVIATIONS * math.sqrt(len(shared) / 4):
        raise UserError(
            f"--shadow {shadow_path} was trained on the attacked run's own split ({agreeing} of "
            f"{len(shared)} utterances are on the same side): the attack would learn who is a "
            "member; name a run on another corpus, or with another data.split_seed"
        )


def _judged_ids(scores: MembershipScores) -> List[str]:
    return [name for name, judged in zip(scores.ids, scores.is_judged.tolist()) if judged]


def shadow_config(config: ExperimentConfig) -> ExperimentConfig:
    """The run's own settings on another corpus: same architecture, same training, same mechanism.

    Words and labels come from where the run has them, except public lists made for its corpus:
    then from the shadow's training part (a shadow holds nothing private).

    Raises:
        UserError: the run's corpus is one's own, so that no other goes with it by default.
    """
    data = config.data
    other = OTHER_CORPUS.get(data.corpus)
    if other is None:
        raise UserError(
            f"--shadow: there is no shadow corpus for {data.corpus} by default; name a run or a "
            "configuration, e.g. --shadow configs/snips_clc.yaml"
        )
    vocabulary, labels = data.vocabulary, data.labels
    if other not in STANDINS and vocabulary.source == "sample" and vocabulary.path is None:
        vocabulary = VocabularyConfig(lowercase=vocabulary.lowercase)
    if labels.source == "file" or labels.path is not None or other not in STANDINS:
        labels = LabelsConfig()
    size = data.size if other in STANDINS else None
    data = replace(
        data, corpus=other, path=None, layout="auto", split="paper", size=size,
        vocabulary=vocabulary, labels=labels,
    )  # fmt: skip
    return replace(config, name=f"shadow_{other}", data=data)


def _rows(signals: Signals, rows: Any) -> Signals:
    """The signals of some utterances."""
    return Signals(*(array[rows] for array in signals))
