"""LiRA on a finished run, with shadow models trained on random halves of its own utterances."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Dict, Optional

import numpy as np

from edp_mx.attacks.directory import attack_folder, write_outcome
from edp_mx.attacks.membership.lira.likelihood import lira_attacks
from edp_mx.attacks.membership.lira.plan import ShadowPlan, ensure_plan
from edp_mx.attacks.membership.lira.processes import read_shadow, train_shadows
from edp_mx.attacks.membership.roc import area, roc_curve
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.settings_differences import check_family, trained_model_facts
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.progress import Progress

SPLIT_KEYS = ("corpus", "path", "layout", "split", "split_seed", "size")


def attack_by_lira(
    path: Path,
    scores: MembershipScores,
    config: ExperimentConfig,
    *,
    shadows: int,
    jobs: int,
    progress: Progress,
) -> Dict[str, Any]:
    """Train the missing shadow models, `jobs` at once, and compare the run with them.

    Each shadow trains in its own process on half of the judged utterances, members and non-members
    alike, with their repeats, and on as many others of the corpus as make up the size of the run's
    training part. Its file is kept, so that an interrupted attack continues. The settings are the
    run's, perhaps with a smaller model or fewer epochs.
    """
    run = RunDirectory.existing(path)
    folder = attack_folder(run, "lira")
    plan = ensure_plan(folder, scores, config, shadows)
    missing = [k for k in range(shadows) if read_shadow(folder, k, plan) is None]
    for _ in progress(train_shadows(folder, missing, jobs), "shadow models", len(missing)):
        pass
    return _compare(run, run, scores, plan)


def attack_by_shadows_of(path: Path, scores: MembershipScores, *, lender: Path) -> Dict[str, Any]:
    """Compare the run with the shadow models of a run on the same split, perhaps itself.

    They know no more of this run than of the other, since each trained on random halves.
    """
    plan = borrowed_plan(path, lender)
    own = set(scores.judged_ids)
    if not own <= set(plan.ids):
        raise UserError(
            f"the shadows of {lender} know {len(own & set(plan.ids))} of the {len(own)} utterances "
            "that are judged: attack without --from-scores, with the --seed, --size and --balanced "
            "of its --lira"
        )
    return _compare(RunDirectory(path), RunDirectory(lender), scores, plan)


def borrowed_plan(path: Path, lender: Path, shadows: Optional[int] = None) -> ShadowPlan:
    """Return the plan of the lender's shadows, if they suit the run at `path` and are so many."""
    run, other = RunDirectory.existing(path), RunDirectory.existing(lender)
    folder = attack_folder(other, "lira")
    plan = ShadowPlan.read(folder)
    own, lent = load_config(run.config), load_config(other.config)
    check_family(own, load_config(folder / "config.yaml"), f"--shadows-of {lender}: each")
    if any(getattr(own.data, key) != getattr(lent.data, key) for key in SPLIT_KEYS):
        raise UserError(
            f"--shadows-of {lender}: its shadows were trained on other utterances; name a run on "
            "the same corpus with the same split"
        )
    if shadows not in (None, plan.shadows):
        raise UserError(f"{lender} has {plan.shadows} shadows: give --lira {plan.shadows}")
    return plan


def check_shadow_settings(config: ExperimentConfig, run: ExperimentConfig) -> None:
    """Refuse settings of shadows that name other utterances than the run's."""
    if replace(config.data, embeddings=run.data.embeddings) != run.data:
        raise UserError(
            "--set data: the shadows of --lira train on the run's own utterances; of its data "
            "settings only data.embeddings may differ"
        )


def _compare(
    run: RunDirectory, lender: RunDirectory, scores: MembershipScores, plan: ShadowPlan
) -> Dict[str, Any]:
    """Compare the outputs of the run with the outputs of the lender's shadows."""
    folder = attack_folder(lender, "lira")
    found = [read_shadow(folder, k, plan) for k in range(plan.shadows)]
    if any(one is None for one in found):
        command = f"edp-mx attack {quote(str(lender.path))} --lira {plan.shadows}"
        raise UserError(
            f"{folder} lacks shadows: finish `{command}` with the settings that it began with"
        )
    place = {name: i for i, name in enumerate(plan.ids)}
    rows = [place[name] for name in scores.judged_ids]
    log_odds, losses = (
        np.stack([one[key] for one in found], axis=1)[rows] for key in ("log_odds", "loss")
    )  # (U, K), (U, K)
    is_in = plan.is_in[rows]  # (U, K)
    guesses = lira_attacks(scores, log_odds, losses, is_in)
    shadows = load_config(folder / "config.yaml")
    aucs = [area(roc_curve(-losses[:, k], is_in[:, k])) for k in range(plan.shadows)]
    facts = {
        "shadows": plan.shadows,
        "shadows were trained for": lender.path.resolve().name,
        "shadows' epochs": shadows.training.epochs,
        "mechanism of the run": load_config(run.config).privacy.mechanism,
        "mechanism of the shadows": shadows.privacy.mechanism,
        "workers of the run": run.num_workers(),
        "workers of each shadow": 1,
        "shadow AUC, mean": float(np.mean(aucs)),
        **trained_model_facts(run, folder),
    }
    return write_outcome(run, "lira", guesses, scores, facts=facts)
