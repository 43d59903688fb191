"""Checks of the options of `edp-mx attack`: none is accepted and then ignored."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Collection, List

from edp_mx.errors import UserError

DEFAULT_SHADOW = "auto"
# Each has a default that means that it was not given.
OPTIONS = (
    *("--shadow", "--lira", "--jobs", "--shadows-of", "--canaries", "--canary-count"),
    *("--canary-digits", "--candidates", "--out", "--from-scores", "--balanced", "--size"),
    *("--seed", "--json", "--runs", "--set"),
)


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that the requested attacks do not read, and impossible values.

    Raises:
        UserError: there is one.
    """
    given = [name for name in OPTIONS if _is_given(arguments, name)]
    if arguments.compare:
        why = "--compare prints a table of earlier attacks"
        _refuse(given, set(OPTIONS) - {"--out"}, why)
        return
    if len(arguments.run_directories) != 1 or arguments.out is not None:
        raise UserError("name one RUN to attack; several, and --out, go with --compare")
    if arguments.lira is not None and arguments.shadows_of is not None:
        raise UserError("--shadows-of uses the shadows of another run: leave out --lira")
    is_new = not arguments.from_scores
    lira = is_new and arguments.lira is not None
    canaries = is_new and arguments.canaries
    shadow = is_new and trains_shadow(arguments)
    for is_read, names, why in (
        (
            is_new,
            {"--seed", "--size", "--balanced"},
            "--from-scores uses the scored utterances",
        ),
        (lira or canaries or shadow, {"--set"}, "no model is trained that --set could change"),
        (lira, {"--jobs"}, "no shadows of --lira are trained"),
        (canaries, {"--canary-count", "--canary-digits", "--candidates"}, "no canaries are drawn"),
        (shadow, {"--runs"}, "no run is trained for --shadow"),
    ):
        if not is_read:
            _refuse(given, names, why)
    if arguments.jobs is not None and arguments.jobs < 1:
        raise UserError(f"--jobs is {arguments.jobs}; it must be 1 or more")


def trains_shadow(arguments: argparse.Namespace) -> bool:
    """Return whether --shadow trains a run instead of naming one."""
    if arguments.shadow is None:
        return False
    return arguments.shadow == [DEFAULT_SHADOW] or not Path(arguments.shadow[0]).is_dir()


def _is_given(arguments: argparse.Namespace, name: str) -> bool:
    """Return whether an option does not have its default."""
    value = getattr(arguments, "overrides" if name == "--set" else name[2:].replace("-", "_"))
    return not (value is None or value is False or value == [])


def _refuse(given: List[str], unread: Collection[str], why: str) -> None:
    """Raise an error if a given option is not read."""
    wrong = [name for name in given if name in unread]
    if wrong:
        raise UserError(f"{why}: leave out {', '.join(wrong)}")
