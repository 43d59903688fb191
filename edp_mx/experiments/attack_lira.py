"""LiRA on a finished run: shadow models on random halves of its own utterances, side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterable

import numpy as np

from edp_mx.attacks.lira import FEW_SHADOWS, lira_attacks
from edp_mx.attacks.roc import area, roc_curve
from edp_mx.attacks.scores import MembershipScores
from edp_mx.config import ExperimentConfig
from edp_mx.errors import UserError
from edp_mx.experiments.attack_directory import Outcome, conclude, folder_of
from edp_mx.experiments.lira_shadows import (
    read_shadow,
    settle_plan,
    shadow_file,
    train_shadows,
)
from edp_mx.experiments.run_directory import RunDirectory


def attack_by_lira(
    path: Path,
    scores: MembershipScores,
    config: ExperimentConfig,
    *,
    shadows: int,
    jobs: int,
    progress: Callable[..., Iterable[Any]],
    is_trained: bool = False,
) -> Outcome:
    """Trains the shadows that are missing, then compares the run with them.

    Each shadow trains on half of the utterances that are judged, members and non-members alike,
    with their repeats, in a process of its own; its file is kept, so that an attack that was
    interrupted goes on. All have the run's vocabulary, which is part of what was released.

    Args:
        config: of the shadows: the run's, perhaps with a smaller model or fewer epochs.
        shadows: how many, K.
        jobs: how many train at once.
        is_trained: train none; all must be there.

    Raises:
        UserError: a shadow cannot be trained, or the folder holds those of other settings.
    """
    run = RunDirectory.existing(path)
    folder = folder_of(run, "lira")
    is_in = settle_plan(folder, scores, config, shadows)
    missing = [k for k in range(shadows) if read_shadow(folder, k, is_in) is None]
    if missing and is_trained:
        raise UserError(f"{shadow_file(folder, missing[0])} is missing: leave out --from-scores")
    for _ in progress(train_shadows(folder, missing, jobs), "shadow models", len(missing)):
        pass
    found = [read_shadow(folder, k, is_in) for k in range(shadows)]
    log_odds = np.stack([one["log_odds"] for one in found if one is not None], axis=1)  # (U, K)
    losses = np.stack([one["loss"] for one in found if one is not None], axis=1)  # (U, K)
    guesses = lira_attacks(scores, log_odds, losses, is_in)
    facts = {
        "shadows": shadows,
        "shadows' epochs": config.training.epochs,
        "workers of the run": run.read("environment")["num_workers"],
        "workers of each shadow": 1,
        "shadow AUC, mean": _mean_auc(losses, is_in),
        "spread": "of all utterances together" if shadows < FEW_SHADOWS else "of each utterance",
    }
    return conclude(run, "lira", guesses, scores, seed=scores.origin.seed, facts=facts)


def lira_config(config: ExperimentConfig, target: ExperimentConfig) -> ExperimentConfig:
    """The shadows' settings, if they go with the run.

    Raises:
        UserError: they speak of other utterances.
    """
    if replace(config.data, embeddings=target.data.embeddings) != target.data:
        raise UserError(
            "--set data: the shadows of --lira train on the run's own utterances; of the data only "
            "data.embeddings may be another"
        )
    return config


def _mean_auc(losses: np.ndarray, is_in: np.ndarray) -> float:
    """How well the loss alone tells each shadow's own members."""
    aucs = [area(roc_curve(-losses[:, k], is_in[:, k])) for k in range(losses.shape[1])]
    return float(np.mean(aucs))
