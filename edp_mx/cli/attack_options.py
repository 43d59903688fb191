"""Checks of the options of `edp-mx attack`: none is accepted and then ignored."""

from __future__ import annotations

import argparse
from pathlib import Path

from edp_mx.cli.console import refuse_unread, require_at_least
from edp_mx.errors import UserError

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
