"""LiRA on a finished run: shadow models on random halves of its own utterances, side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterable

import numpy as np

from edp_mx.attacks.directory import Outcome, attack_folder, write_outcome
from edp_mx.attacks.membership.lira.likelihood import FEW_SHADOWS, lira_attacks
from edp_mx.attacks.membership.lira.plan import ShadowPlan, ensure_plan
from edp_mx.attacks.membership.lira.processes import read_shadow, train_shadows
from edp_mx.attacks.membership.roc import area, roc_curve
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.settings_differences import check_family, trained_model_facts
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.config import DataConfig
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory


def attack_by_lira(
    path: Path,
    scores: MembershipScores,
    config: ExperimentConfig,
    *,
    shadows: int,
    jobs: int,
    progress: Callable[..., Iterable[Any]],
) -> Outcome:
    """Trains the shadows that are missing, then compares the run with them.

    Each shadow trains on half of the utterances that are judged, members and non-members alike,
    with their repeats, and on so many others of the corpus that it has as many as the run; in a
    process of its own. Its file is kept, so that an attack that was interrupted goes on.

    Args:
        config: of the shadows: the run's, perhaps with a smaller model or fewer epochs.
        shadows: how many, K.
        jobs: how many train at once.

    Raises:
        UserError: a shadow cannot be trained, or the folder holds those of other settings.
    """
    run = RunDirectory.existing(path)
    folder = attack_folder(run, "lira")
    plan = ensure_plan(folder, scores, config, shadows)
    missing = [k for k in range(shadows) if read_shadow(folder, k, plan) is None]
    for _ in progress(train_shadows(folder, missing, jobs), "shadow models", len(missing)):
        pass
    return _compare(run, run, scores, plan)


def attack_by_shadows_of(path: Path, scores: MembershipScores, *, lender: Path) -> Outcome:
    """The same with the shadows that were trained for another run on the same split.

    They know of the run no more than of the other: each trained on random halves.

    Args:
        lender: the run that was attacked by LiRA before; the run itself for its own shadows.

    Raises:
        UserError: it was not, or it was on other utterances.
    """
    plan = borrowed_plan(path, lender)
    own = {scores.ids[i] for i in np.flatnonzero(scores.is_judged)}
    if not own <= set(plan.ids):
        raise UserError(
            f"the shadows of {lender} know {len(own & set(plan.ids))} of the {len(own)} utterances "
            "that are judged: attack without --from-scores, with the --seed, --size and --balanced "
            "of its --lira"
        )
    return _compare(RunDirectory(path), RunDirectory(lender), scores, plan)


def borrowed_plan(path: Path, lender: Path) -> ShadowPlan:
    """The plan of the lender's shadows, if they serve the run at `path` too.

    Raises:
        UserError: there are none, or they are another kind of model, or on other utterances.
    """
    run, other = RunDirectory.existing(path), RunDirectory.existing(lender)
    plan = ShadowPlan.read(attack_folder(other, "lira"))
    own, shadows = (
        load_config(run.config),
        load_config(attack_folder(other, "lira") / "config.yaml"),
    )
    check_family(own, shadows, f"--shadows-of {lender}: each")
    if not _is_same_split(own.data, load_config(other.config).data):
        raise UserError(
            f"--shadows-of {lender}: its shadows were trained on other utterances; name a run on "
            "the same corpus with the same split"
        )
    return plan


def check_kept(path: Path, shadows: int) -> None:
    """Refuses another number of shadows than a run has; their settings are whatever they are.

    Raises:
        UserError: it has none, or others.
    """
    plan = ShadowPlan.read(attack_folder(RunDirectory.existing(path), "lira"))
    if plan.shadows != shadows:
        raise UserError(f"{path} has {plan.shadows} shadows: give --lira {plan.shadows}")


def _compare(
    run: RunDirectory, lender: RunDirectory, scores: MembershipScores, plan: ShadowPlan
) -> Outcome:
    """The run's outputs against those of the shadows that lie at the lender's."""
    folder = attack_folder(lender, "lira")
    found = [read_shadow(folder, k, plan) for k in range(plan.shadows)]
    if any(one is None for one in found):
        raise UserError(
            f"{folder} lacks shadows: finish `edp-mx attack {lender.path} --lira {plan.shadows}` "
            "with the settings that it began with"
        )
    place = {name: i for i, name in enumerate(plan.ids)}
    rows = [place[scores.ids[i]] for i in np.flatnonzero(scores.is_judged)]
    log_odds, losses = (
        np.stack([one[key] for one in found], axis=1)[rows] for key in ("log_odds", "loss")
    )  # (U, K), (U, K)
    is_in = plan.is_in[rows]  # (U, K)
    guesses = lira_attacks(scores, log_odds, losses, is_in)
    shadows = load_config(folder / "config.yaml")
    facts = {
        "shadows": plan.shadows,
        "shadows were trained for": lender.path.resolve().name,
        "shadows' epochs": shadows.training.epochs,
        "mechanism of the run": load_config(run.config).privacy.mechanism,
        "mechanism of the shadows": shadows.privacy.mechanism,
        "workers of the run": run.read("environment")["num_workers"],
        "workers of each shadow": 1,
        "shadow AUC, mean": _mean_auc(losses, is_in),
        "spread": "of all utterances together" if plan.shadows < FEW_SHADOWS else "of each one",
        **trained_model_facts(run, folder),
    }
    return write_outcome(run, "lira", guesses, scores, seed=scores.origin.seed, facts=facts)


def _is_same_split(one: DataConfig, other: DataConfig) -> bool:
    """Whether two runs have the same utterances in the same parts."""
    keys = ("corpus", "path", "layout", "split", "split_seed", "size")
    return all(getattr(one, key) == getattr(other, key) for key in keys)


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
