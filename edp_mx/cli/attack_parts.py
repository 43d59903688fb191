"""Preparation of the attacks of `edp-mx attack`: check the settings, return the work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

from edp_mx.cli.attack_options import DEFAULT_SHADOW, trains_shadow
from edp_mx.cli.console import progress_bar, start_logging
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from edp_mx.attacks.directory import Outcome
    from edp_mx.attacks.membership.scores import MembershipScores

Report = Tuple[Dict[str, Any], str]  # outcome of an attack, for JSON and as text


def prepare_canaries(arguments: argparse.Namespace, run: RunDirectory) -> Callable[[], Report]:
    """Return the function that trains with canaries and measures their exposure."""
    from edp_mx.attacks.canaries.attack import attack_by_canaries, write_exposures
    from edp_mx.attacks.canaries.numbers import CanarySettings
    from edp_mx.attacks.directory import attack_folder
    from edp_mx.config import load_config
    from edp_mx.reports.exposure_page import describe_exposure, write_exposure_report
    from edp_mx.runtime.distributed import start

    given = {
        "count": arguments.canary_count,
        "digits": arguments.canary_digits,
        "candidates": arguments.candidates,
        "seed": arguments.seed,
    }
    settings = CanarySettings(**{key: value for key, value in given.items() if value is not None})
    config = load_config(run.config, arguments.overrides)
    folder = attack_folder(run, "canaries")

    def attack() -> Report:
        if arguments.from_scores:
            found = write_exposures(run)
        else:
            progress = progress_bar(is_first=True)
            found = attack_by_canaries(run.path, config, settings, start(), progress)
        write_exposure_report(folder)
        value = {key: found[key] for key in ("canaries", "facts")}
        text = f"{describe_exposure(**value)}\n{folder / 'report.html'}\n"
        return {"attack": "canaries", **value}, text

    return attack


def prepare_lira(
    arguments: argparse.Namespace, path: Path
) -> Callable[[MembershipScores], Outcome]:
    """Return the function that trains missing shadows, or uses another run's, and compares."""
    from edp_mx.attacks.membership.lira.attack import (
        attack_by_lira,
        attack_by_shadows_of,
        borrowed_plan,
        check_kept_shadows,
        check_shadow_settings,
    )
    from edp_mx.attacks.membership.lira.likelihood import check_shadow_count
    from edp_mx.config import load_config

    lender, shadows = arguments.shadows_of, arguments.lira
    if lender is None:
        check_shadow_count(shadows)
        if arguments.from_scores:
            check_kept_shadows(path, shadows)
            lender = path
    if lender is not None:
        borrowed_plan(path, lender)
        return lambda scores: attack_by_shadows_of(path, scores, lender=lender)
    settings = path / "config.yaml"
    config = load_config(settings, arguments.overrides)
    check_shadow_settings(config, load_config(settings))
    return lambda scores: attack_by_lira(
        path,
        scores,
        config,
        shadows=shadows,
        jobs=arguments.jobs or os.cpu_count() or 1,
        progress=progress_bar(is_first=True),
    )


def prepare_scores(arguments: argparse.Namespace) -> Callable[[Path], MembershipScores]:
    """Return the function that computes the scores of a run, or reads saved ones."""
    from edp_mx.attacks.membership.run_scores import Selection, saved_scores, score_run

    if arguments.from_scores:
        return saved_scores
    selection = Selection(arguments.seed or 0, arguments.balanced, arguments.size or 0)
    progress = progress_bar(is_first=True)
    return lambda path: score_run(path, selection, progress)


def prepare_shadow(arguments: argparse.Namespace, path: Path) -> Callable[[], Path]:
    """Return the function that returns the shadow's run directory, after training if needed."""
    from edp_mx.attacks.membership.shadow_attack import shadow_config
    from edp_mx.attacks.settings_differences import check_family
    from edp_mx.config import load_config

    given, name = Path(arguments.shadow[0]), f"--shadow {' '.join(arguments.shadow)}"
    own = load_config(path / "config.yaml")
    if not trains_shadow(arguments):
        if len(arguments.shadow) > 1:
            raise UserError(f"{name} names several runs; name one run, or configurations only")
        if given.resolve() == path.resolve():
            raise UserError(f"{name} is the attacked run itself; name another run")
        run = RunDirectory.existing(given)
        check_family(own, load_config(run.config), name)
        if not run.has("results"):
            raise UserError(f"{name} is not finished: run `edp-mx train --resume {given}`")
        return lambda: given
    if arguments.from_scores:
        raise UserError("--from-scores needs a trained shadow: name its run directory")
    if arguments.shadow == [DEFAULT_SHADOW]:
        config = shadow_config(load_config(path / "config.yaml", arguments.overrides))
    else:
        config = load_config(arguments.shadow, arguments.overrides)
    check_family(own, config, name)
    return lambda: _train(config, arguments.runs or Path("runs"))


def _train(config: Any, runs: Path) -> Path:
    """Train a shadow in this process."""
    from edp_mx.config import dump_config
    from edp_mx.runs.train import train
    from edp_mx.runtime.distributed import start

    directory = RunDirectory.choose(config.name, runs)
    directory.create(config.name, dump_config(config))
    start_logging(is_first=True, file=directory.log(0))
    train(config, start(), directory, progress_bar(is_first=True))
    start_logging(is_first=True)
    return directory.path
