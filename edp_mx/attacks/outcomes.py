"""The attacks on a run that are asked for, one after the other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

from edp_mx.attacks.canaries.attack import attack_by_canaries
from edp_mx.attacks.canaries.numbers import CanarySettings
from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.lira.attack import (
    attack_by_lira,
    attack_by_shadows_of,
    borrowed_plan,
    check_shadow_settings,
)
from edp_mx.attacks.membership.lira.likelihood import check_shadow_count
from edp_mx.attacks.membership.run_scores import Selection, saved_scores, score_run
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.membership.shadow_attack import attack_by_shadow, shadow_config
from edp_mx.attacks.membership.thresholds import threshold_attacks
from edp_mx.attacks.request import AUTOMATIC, AttackRequest
from edp_mx.attacks.settings_differences import check_family
from edp_mx.config import ExperimentConfig, load_config
from edp_mx.errors import UserError
from edp_mx.runs.lifecycle import RunRequest, carry_out
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.train import train
from edp_mx.runtime.distributed import start
from edp_mx.runtime.progress import progress_bar, start_logging

Outcome = Dict[str, Any]  # of an attack, which "attack" names, for JSON


def outcomes(request: AttackRequest) -> Iterator[Outcome]:
    """Yield the outcome of each attack, the quickest first; all is checked before the first."""
    run, scores_of = RunDirectory(request.path), _scores_of(request)
    shadow_run = None if request.shadow is None else _shadow(request, request.shadow)
    wants_lira = request.lira is not None or request.shadows_of is not None
    by_lira = _lira(request) if wants_lira else None
    by_canaries = _canaries(request, run) if request.canaries else None
    scores = scores_of(request.path)
    yield write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    if shadow_run is not None:
        other = shadow_run()
        yield attack_by_shadow(request.path, scores, shadow_path=other, shadow=scores_of(other))
    if by_lira is not None:
        yield by_lira(scores)
    if by_canaries is not None:
        found = by_canaries()
        yield {"attack": "canaries", "canaries": found["canaries"], "facts": found["facts"]}


def _canaries(request: AttackRequest, run: RunDirectory) -> Callable[[], Dict[str, Any]]:
    """The function that trains with canaries and measures their exposure."""
    given: Dict[str, Any] = {
        "count": request.canary_count,
        "digits": request.canary_digits,
        "candidates": request.candidates,
        "seed": request.seed,
    }
    settings = CanarySettings(**{key: n for key, n in given.items() if n is not None})
    config = _for_one_worker(run, request)
    return lambda: attack_by_canaries(
        run.path, config, settings, start(), progress_bar(is_first=True)
    )


def _lira(request: AttackRequest) -> Callable[[MembershipScores], Outcome]:
    """The function that trains missing shadows, or uses another run's, and compares."""
    path, shadows = request.path, request.lira
    if shadows is not None:
        check_shadow_count(shadows)
    if shadows is None or request.from_scores:
        lender = request.shadows_of or path
        borrowed_plan(path, lender, shadows)
        return lambda scores: attack_by_shadows_of(path, scores, lender=lender)
    run = RunDirectory(path)
    config = _for_one_worker(run, request)
    check_shadow_settings(config, load_config(run.config))
    return lambda scores: attack_by_lira(
        path,
        scores,
        config,
        shadows=shadows,
        jobs=request.jobs or os.cpu_count() or 1,
        progress=progress_bar(is_first=True),
    )


def _for_one_worker(run: RunDirectory, request: AttackRequest) -> ExperimentConfig:
    """Return the settings with which one worker takes steps like those of all of the run's."""
    config = load_config(run.config, request.overrides)
    if config.privacy.mechanism != "edp_sgd":
        return config
    count = config.privacy.micro_batches_per_worker * run.num_workers()
    return replace(config, privacy=replace(config.privacy, micro_batches_per_worker=count))


def _scores_of(request: AttackRequest) -> Callable[[Path], MembershipScores]:
    """The function that computes the scores of a run, or reads saved ones."""
    if request.from_scores:
        return saved_scores
    selection = Selection(request.seed or 0, request.balanced, request.size or 0)
    return lambda path: score_run(path, selection, progress_bar(is_first=True))


def _shadow(request: AttackRequest, shadow: List[str]) -> Callable[[], Path]:
    """The function that returns the shadow's run directory, after training if needed."""
    given, name = Path(shadow[0]), f"--shadow {' '.join(shadow)}"
    own = load_config(request.path / "config.yaml")
    if not request.trains_shadow:
        if len(shadow) > 1:
            raise UserError(f"{name} names several runs; name one run, or configurations only")
        if given.resolve() == request.path.resolve():
            raise UserError(f"{name} is the attacked run itself; name another run")
        run = RunDirectory.existing(given)
        check_family(own, load_config(run.config), name)
        if not run.has("results"):
            raise UserError(f"{name} is not finished: run `{run.resume_command()}`")
        return lambda: given
    if request.from_scores:
        raise UserError("--from-scores needs a trained shadow: name its run directory")
    if shadow == [AUTOMATIC]:
        config = shadow_config(load_config(request.path / "config.yaml", request.overrides))
    else:
        config = load_config(shadow, request.overrides)
    check_family(own, config, name)
    return lambda: _train(config, request.runs or Path("runs"))


def _train(config: Any, runs: Path) -> Path:
    _, directory = carry_out(RunRequest(checked=config, runs=runs), train)
    start_logging(is_first=True)
    return directory.path
