"""The attack of the paper, by a shadow run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.classifiers import learn_classifier
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.attacks.settings_differences import shadow_run_facts
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.synthetic import STANDINS
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS
from edp_mx.errors import UserError
from edp_mx.runs.file_types import Environment
from edp_mx.runs.run_directory import RunDirectory

# The corpus of the default shadow of a run on each corpus.
OTHER_CORPUS = {
    "atis": "snips",
    "snips": "atis",
    "nlu_eval": "snips",
    "dstc8": "snips",
    "communication": "health",
    "health": "video",
    "video": "communication",
}
MOST_DEVIATIONS = 8.0  # standard deviations of the agreement of two independent splits


def attack_by_shadow(
    path: Path, scores: MembershipScores, *, shadow_path: Path, shadow: MembershipScores
) -> Dict[str, Any]:
    """Run the attack of the paper: train it on outputs of a shadow, try it on the run's.

    The membership labels of the run only measure the success.

    Raises:
        UserError: the shadow is the run itself, was trained on the members of the run, or has too
            few members; or one of the two has diverged.
    """
    if shadow.origin.weights == scores.origin.weights:
        raise UserError(
            f"--shadow {shadow_path} has the weights of the attacked run: the attack would be told "
            "who is a member; name another run"
        )
    run, shadow_run = RunDirectory.existing(path), RunDirectory.existing(shadow_path)
    part = _training_part(run)
    if part is not None and part == _training_part(shadow_run):
        raise UserError(
            f"--shadow {shadow_path} has the training part of the attacked run: the attack would "
            "learn who is a member; name a run on another corpus, or with another data.split_seed"
        )
    if _source_of(run) == _source_of(shadow_run):
        _check_apart(scores, shadow, shadow_path)
    seed = scores.origin.seed
    classifier = learn_classifier(shadow.judged_signals, shadow.labels, seed=seed)
    guesses = Guesses(
        "shadow classifier",
        f"log-odds by {classifier.name}, which did best in cross-validation on the shadow",
        classifier.log_odds(scores.judged_signals),
        threshold=0.0,
    )
    facts: Dict[str, Any] = {
        "shadow": shadow_path.resolve().name,
        "shadow corpus": shadow.origin.corpus,
        "shadow weights": shadow.origin.weights,
        "workers of the run": run.num_workers(),
        "workers of the shadow": shadow_run.num_workers(),
        "shadow members": int(shadow.labels.sum()),
        **shadow_run_facts(run, shadow_run),
        "classifier": classifier.name,
        **{f"shadow AUC, {name}": auc for name, auc in classifier.shadow_auc.items()},
    }
    return write_outcome(run, "shadow", [guesses], scores, facts=facts)


def _training_part(run: RunDirectory) -> Optional[Mapping[str, str]]:
    """Return the keyed fingerprint of a run's training part, None where it is not there."""
    return run.load(Environment).fingerprints.get("train")


def _source_of(run: RunDirectory) -> Tuple[Any, ...]:
    """Return the settings that name the utterances of a run."""
    data = load_config(run.config).data
    return data.corpus, data.path, data.layout


def _check_apart(scores: MembershipScores, shadow: MembershipScores, shadow_path: Path) -> None:
    """Refuse a shadow on the split of the run, from which the attack would learn the members.

    With independent splits about half of the utterances that both judge are on the same side.
    """
    sides = dict(zip(scores.judged_ids, scores.labels.tolist()))
    others = dict(zip(shadow.judged_ids, shadow.labels.tolist()))
    shared = sides.keys() & others.keys()
    agreeing = sum(sides[name] == others[name] for name in shared)
    if abs(agreeing - len(shared) / 2) > MOST_DEVIATIONS * math.sqrt(len(shared) / 4):
        raise UserError(
            f"--shadow {shadow_path} was trained on the attacked run's own split ({agreeing} of "
            f"{len(shared)} utterances are on the same side): the attack would learn who is a "
            "member; name a run on another corpus, or with another data.split_seed"
        )


def shadow_config(config: ExperimentConfig) -> ExperimentConfig:
    """Return the settings of the run on another corpus: same architecture, training, mechanism.

    Words and labels come from the same source as the run's. Public lists that were made for the
    corpus of the run are replaced by the training part of the shadow, which is not private: all
    inputs count as public, also a start that was trained on the shadow's corpus.
    """
    data = config.data
    other = OTHER_CORPUS.get(data.corpus)
    if other is None:
        raise UserError(
            f"--shadow: {data.corpus} has no default shadow corpus; name a run or a "
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
    privacy = replace(config.privacy, assume_public=tuple(PRIVATE_INPUTS))
    return replace(config, name=f"shadow_{other}", data=data, privacy=privacy)
