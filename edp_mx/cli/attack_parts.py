"""What `edp-mx attack` does, a function an attack: it looks at the settings, returns the work."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.attacks.scores import MembershipScores
    from edp_mx.experiments.attack_directory import Outcome
    from edp_mx.experiments.run_directory import RunDirectory

Said = Tuple[Dict[str, Any], str]  # an attack's outcome as JSON, and in words
DEFAULT_SHADOW = "auto"


def canaries(arguments: argparse.Namespace, directory: RunDirectory) -> Callable[[], Said]:
    """What trains with canaries and measures them."""
    from edp_mx.cli.console import progress_bar
    from edp_mx.config import load_config
    from edp_mx.distributed import start
    from edp_mx.experiments.attack_canaries import attack_by_canaries, conclude_canaries
    from edp_mx.experiments.attack_directory import folder_of
    from edp_mx.experiments.number_canaries import CanarySettings
    from edp_mx.reports.exposure_page import HEADER, exposure_rows, write_exposure_report
    from edp_mx.reports.table import render_table

    settings = CanarySettings(
        count=arguments.canary_count,
        digits=arguments.canary_digits,
        candidates=arguments.candidates,
        seed=arguments.seed,
    )
    config = load_config(directory.config, arguments.overrides)
    folder = folder_of(directory, "canaries")

    def attack() -> Said:
        if arguments.from_scores:
            rows = conclude_canaries(directory)
        else:
            progress = progress_bar(is_first=True)
            rows = attack_by_canaries(directory.path, config, settings, start(), progress)
        write_exposure_report(folder)
        text = f"{render_table(HEADER, exposure_rows(rows))}\n{folder / 'report.html'}\n"
        return {"attack": "canaries", "canaries": rows}, text

    return attack


def lira(arguments: argparse.Namespace, path: Path) -> Callable[[MembershipScores], Outcome]:
    """What trains the shadows that are missing, or takes another run's, and compares."""
    from edp_mx.attacks.lira import check_number
    from edp_mx.cli.console import progress_bar
    from edp_mx.config import load_config
    from edp_mx.experiments.attack_lira import (
        attack_by_lira,
        attack_by_shadows_of,
        borrowed_plan,
        lira_config,
    )

    lender = arguments.shadows_of
    if lender is not None:
        if arguments.lira is not None:
            raise UserError("--shadows-of brings its own shadows: leave out --lira")
        borrowed_plan(path, lender)
        return lambda scores: attack_by_shadows_of(path, scores, lender=lender)
    check_number(arguments.lira)
    settings = path / "config.yaml"
    config = lira_config(load_config(settings, arguments.overrides), load_config(settings))
    return lambda scores: attack_by_lira(
        path,
        scores,
        config,
        shadows=arguments.lira,
        jobs=max(1, arguments.jobs),
        progress=progress_bar(is_first=True),
        is_trained=arguments.from_scores,
    )


def scorer(arguments: argparse.Namespace) -> Callable[[Path], MembershipScores]:
    """Computes a run's scores, or reads those that were saved."""
    from edp_mx.cli.console import progress_bar
    from edp_mx.experiments.attack_signals import Selection, saved_scores, score_run

    if arguments.from_scores:
        return saved_scores
    selection = Selection(arguments.seed, arguments.balanced, arguments.size)
    progress = progress_bar(is_first=True)
    return lambda path: score_run(path, selection, progress)


def shadow(arguments: argparse.Namespace, path: Path) -> Callable[[], Path]:
    """What gives the shadow's run directory, and trains it first if need be.

    Raises:
        UserError: it is neither a run nor a configuration, or is the attacked run.
    """
    from edp_mx.config import load_config
    from edp_mx.experiments.attack_shadow import shadow_config
    from edp_mx.experiments.run_directory import RunDirectory

    given = Path(arguments.shadow)
    if arguments.shadow != DEFAULT_SHADOW and given.is_dir():
        if arguments.overrides and arguments.lira is None and not arguments.canaries:
            raise UserError(f"--set changes what is trained, and {given} is trained already")
        if given.resolve() == path.resolve():
            raise UserError(f"--shadow {given} is the attacked run itself; name another run")
        RunDirectory.existing(given)
        return lambda: given
    if arguments.from_scores:
        raise UserError("--from-scores needs a shadow that is trained: name its run directory")
    if arguments.shadow == DEFAULT_SHADOW:
        config = shadow_config(load_config(path / "config.yaml", arguments.overrides))
    else:
        config = load_config(given, arguments.overrides)
    return lambda: _train(config, arguments.runs)


def _train(config: Any, runs: Path) -> Path:
    """Trains a shadow in this process."""
    from edp_mx.cli.console import progress_bar, start_logging
    from edp_mx.config import dump_config
    from edp_mx.distributed import start
    from edp_mx.experiments.run_directory import RunDirectory
    from edp_mx.experiments.train import train

    directory = RunDirectory.choose(config.name, runs)
    directory.create(config.name, dump_config(config))
    start_logging(is_first=True, file=directory.log(0))
    train(config, start(), directory, progress_bar(is_first=True))
    start_logging(is_first=True)
    return directory.path
