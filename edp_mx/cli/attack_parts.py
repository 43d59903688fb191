"""Preparation of `edp-mx attack`: check options and settings, and return each attack's work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

from edp_mx.cli.console import progress_bar, refuse_unread, require_at_least, start_logging
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from edp_mx.attacks.membership.scores import MembershipScores

Report = Tuple[Dict[str, Any], str]  # outcome of an attack, for JSON and as text


DEFAULT_SHADOW = "auto"
# All but --out, which goes with --compare.
OF_ATTACKS = (
    *("--shadow", "--lira", "--jobs", "--shadows-of", "--canaries", "--canary-count"),
    *("--canary-digits", "--candidates", "--from-scores", "--balanced", "--size", "--seed"),
    *("--json", "--runs", "--set"),
)


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that the requested attacks do not read, and impossible values."""
    if arguments.compare:
        refuse_unread(arguments, OF_ATTACKS, "--compare prints a table of earlier attacks")
        return
    if len(arguments.run_directories) != 1 or arguments.out is not None:
        raise UserError("name one RUN to attack; several, and --out, go with --compare")
    if arguments.lira is not None and arguments.shadows_of is not None:
        raise UserError("--shadows-of uses the shadows of another run: leave out --lira")
    is_new = not arguments.from_scores
    lira = is_new and arguments.lira is not None
    canaries = is_new and arguments.canaries
    shadow = is_new and trains_shadow(arguments)
    of_canaries = ("--canary-count", "--canary-digits", "--candidates")
    for is_read, names, why in (
        (is_new, ("--balanced", "--size", "--seed"), "--from-scores uses the scored utterances"),
        (lira or canaries or shadow, ("--set",), "no model is trained that --set could change"),
        (lira, ("--jobs",), "no shadows of --lira are trained"),
        (canaries, of_canaries, "no canaries are drawn"),
        (shadow, ("--runs",), "no run is trained for --shadow"),
    ):
        if not is_read:
            refuse_unread(arguments, names, why)
    require_at_least(1 if arguments.jobs is None else arguments.jobs, 1, "--jobs")


def trains_shadow(arguments: argparse.Namespace) -> bool:
    """Return whether --shadow trains a run instead of naming one."""
    if arguments.shadow is None:
        return False
    return arguments.shadow == [DEFAULT_SHADOW] or not Path(arguments.shadow[0]).is_dir()


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
) -> Callable[[MembershipScores], Dict[str, Any]]:
    """Return the function that trains missing shadows, or uses another run's, and compares."""
    from edp_mx.attacks.membership.lira.attack import (
        attack_by_lira,
        attack_by_shadows_of,
        borrowed_plan,
        check_shadow_settings,
    )
    from edp_mx.attacks.membership.lira.likelihood import check_shadow_count
    from edp_mx.config import load_config

    lender, shadows = arguments.shadows_of, arguments.lira
    if lender is None:
        check_shadow_count(shadows)
        if arguments.from_scores:
            lender = path
    if lender is not None:
        borrowed_plan(path, lender, shadows)
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
            raise UserError(f"{name} is not finished: run `{run.resume_command()}`")
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
