"""Starting and resuming a run: what `train` and `pretrain` share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

from edp_mx.cli.console import add_configs, add_overrides, tell, whole
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

if TYPE_CHECKING:
    from edp_mx.runs.lifecycle import RunRequest, Work


def add_start_options(parser: argparse.ArgumentParser, *example: str) -> None:
    """Declare the options that start a run or resume one.

    Args:
        example: settings for the help of `--set`, where they are others than a training's.
    """
    add = parser.add_argument
    add_configs(parser, nargs="*")
    add("--resume", type=Path, metavar="RUN", help="resume an interrupted run")
    add_overrides(parser, *example)
    add("--run", dest="run_directory", type=Path, help="the run directory (default: a new one)")
    add("--runs", type=Path, default=Path("runs"), help="folder for new run directories (runs)")
    add(
        "--max-restarts",
        type=int,
        default=0,
        metavar="K",
        help="with launch/*.sh: go on so often after a worker died or a host was lost (0)",
    )
    add(
        "--check",
        action="store_true",
        help="check the configuration and its files, and train nothing",
    )
    add(
        "--check-files",
        action="store_true",
        help="the same at once: settings and files only, without a look at the corpus or at ε",
    )
    add(
        "--workers",
        type=whole,
        help="with --check: the number of workers (1, or those of the run to resume)",
    )
    add("--json", action="store_true", help="print the result as JSON")


def start_run(
    arguments: argparse.Namespace,
    request: RunRequest,
    work: Work,
    *,
    check: Callable[[Any, int, Optional[RunDirectory], bool], str],
    describe: Callable[[RunDirectory], str],
    as_json: Callable[[RunDirectory], Any],
) -> int:
    """Start or resume a run; with `--check` only look at its settings.

    Args:
        check: `check(config, num_workers, resumed, is_quick)` raises a UserError if the settings
            or files are unsound, and returns what `--check` prints.
        describe, as_json: what rank 0 prints of the finished run, and with `--json`.
    """
    if bool(arguments.configs) == (arguments.resume is not None):
        raise UserError("name either a configuration or, with --resume, a run to resume")
    if arguments.resume and (arguments.overrides or arguments.run_directory):
        raise UserError("--resume keeps the settings of the run: leave out --set and --run")
    if arguments.max_restarts < 0:
        raise UserError(f"--max-restarts is {arguments.max_restarts}; it must be 0 or more")
    from edp_mx.runs.lifecycle import carry_out, refuse_absent

    if arguments.check or arguments.check_files:
        config = request.config()
        refuse_absent(config)
        resumed = RunDirectory(arguments.resume) if arguments.resume else None
        count = arguments.workers
        if count is None:
            count = 1 if resumed is None else resumed.num_workers()
        print(check(config, count, resumed, arguments.check_files))
        print("the settings are sound; nothing was trained")
        return 0
    if arguments.max_restarts and "HOROVOD_RANK" not in os.environ:
        script = f"launch/{arguments.command}.sh"
        raise UserError(f"--max-restarts needs a process that outlives the run: use NP=1 {script}")

    workers, directory = carry_out(request, work)
    if workers.is_first:
        tell(arguments, lambda: as_json(directory), lambda: describe(directory))
    return 0
