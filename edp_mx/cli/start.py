"""Starting and resuming a run: what `train` and `pretrain` share."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

from edp_mx.cli.console import (
    add_configs,
    add_overrides,
    interrupt,
    print_json,
    progress_bar,
    start_logging,
    whole,
)
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.processes import on_ending


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
    *,
    kind: type,
    readme: str,
    check: Callable[[Any, int, Optional[RunDirectory], bool], str],
    run: Callable[..., str],
    as_json: Callable[[RunDirectory], Any],
) -> int:
    """Start or resume a run; with `--check` only look at its settings.

    Args:
        kind: class of the configuration.
        check: `check(config, num_workers, resumed, is_quick)` raises a UserError if the settings
            or files are unsound, and returns what `--check` prints.
        run: `run(config, workers, directory, progress, parting)` does the work; rank 0 prints its
            result.
        as_json: of a finished run what `--json` prints instead.
    """
    if bool(arguments.configs) == (arguments.resume is not None):
        raise UserError("name either a configuration or, with --resume, a run to resume")
    if arguments.resume and (arguments.overrides or arguments.run_directory):
        raise UserError("--resume keeps the settings of the run: leave out --set and --run")
    if arguments.max_restarts < 0:
        raise UserError(f"--max-restarts is {arguments.max_restarts}; it must be 0 or more")
    if arguments.check or arguments.check_files:
        config = _read_config(arguments, kind)
        _refuse_absent(config)
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

    workers, directory, outcome = carry_out(arguments, kind=kind, readme=readme, run=run)
    if workers.is_first and arguments.json:
        print_json(as_json(directory))
    elif workers.is_first:
        print(outcome)
    return 0


def carry_out(
    arguments: argparse.Namespace, *, kind: type, readme: str, run: Callable[..., str]
) -> Tuple[Any, RunDirectory, str]:
    """Open the run directory and work in it, locked; what fails leaves no folder without a run.

    Returns:
        The workers, the run directory, and what `run` has to say on rank 0.
    """
    from edp_mx.config import read_dumped
    from edp_mx.runs.interrupted import after_interruption
    from edp_mx.runtime.distributed import start

    workers = start()
    with ExitStack() as stack:
        # Rank 0 prepares the directory; no worker writes before it exists.
        settings, path = workers.on_first(lambda: _open(arguments, kind, readme, workers, stack))
        config: Any = read_dumped(settings, kind=kind)
        directory = RunDirectory(Path(path))
        is_new = arguments.resume is None
        resume = directory.resume_command(workers.size, arguments.command)
        parting = partial(after_interruption, directory, resume, is_new=is_new)
        stack.callback(on_ending(interrupt))  # until the watchdog takes over
        try:
            progress = enter_run(directory, workers)
            outcome = run(config, workers, directory, progress, parting)
        except BaseException as error:
            if workers.is_first:
                _leave(directory, error, parting, is_new=is_new)
            raise
    return workers, directory, outcome


def _leave(directory: RunDirectory, error: BaseException, parting: Any, *, is_new: bool) -> None:
    """Say after Ctrl-C how the run goes on; remove the folder of one that has not begun."""
    from edp_mx.runs.interrupted import has_begun, remove

    if isinstance(error, KeyboardInterrupt):
        for line in parting():
            print(f"edp-mx: {line}", file=sys.stderr)
    elif is_new and not has_begun(directory):
        remove(directory)


def create_run(
    arguments: argparse.Namespace,
    config: Any,
    *,
    readme: str,
    suffix: str = "",
    num_workers: int = 1,
) -> Any:
    """Create the run directory that `--run` names, or a new one below `--runs`; on rank 0.

    The name of a new one is that of the configuration and `suffix`. One that a failed start has
    left behind is made anew.
    """
    from edp_mx.config import dump_config
    from edp_mx.runs.interrupted import make_way

    directory = RunDirectory.choose(f"{config.name}{suffix}", arguments.runs)
    if arguments.run_directory:
        directory = RunDirectory(arguments.run_directory)
        make_way(directory)
    resume = directory.resume_command(num_workers, arguments.command)
    directory.create(config.name, dump_config(config), readme=readme, resume=resume)
    return directory


def enter_run(directory: Any, workers: Any) -> Any:
    """Begin this worker's log in a run directory; return its progress bars."""
    directory.path.mkdir(parents=True, exist_ok=True)  # on the disk of another machine
    start_logging(is_first=workers.is_first, file=directory.log(workers.rank))
    return progress_bar(is_first=workers.is_first)


def _open(
    arguments: argparse.Namespace, kind: type, readme: str, workers: Any, stack: ExitStack
) -> Tuple[str, str]:
    """Return the settings as YAML and the path of the run, a new one unless a run is resumed.

    Until the end of `stack` no other process may train into it.
    """
    from edp_mx.config import dump_config

    config = _read_config(arguments, kind)
    if arguments.resume:
        directory = RunDirectory(arguments.resume)
    else:
        _refuse_absent(config)
        directory = create_run(arguments, config, readme=readme, num_workers=workers.size)
    stack.enter_context(directory.locked())
    return dump_config(config), str(directory.path)


def _refuse_absent(config: Any) -> None:
    """Refuse settings that name files which are not there, all of them in one sentence."""
    from edp_mx.runs.record import absent_files

    absent = absent_files(config)
    if absent:
        named = ", ".join(f"{key} ({path})" for key, path in absent.items())
        raise UserError(f"these files or folders do not exist: {named}")


def _read_config(arguments: argparse.Namespace, kind: type) -> Any:
    """Return the configuration that is named, or that of the run to resume."""
    from edp_mx.config import load_config

    if arguments.resume is None:
        return load_config(arguments.configs, arguments.overrides, kind=kind)
    return load_config(RunDirectory.unfinished(arguments.resume).config, kind=kind)
