"""Starting and resuming a run: what `train` and `pretrain` share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Callable, Tuple

from edp_mx.cli.console import add_configs, add_overrides, progress_bar, start_logging
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory


def add_start_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that start a run or resume one."""
    add = parser.add_argument
    add_configs(parser, nargs="*")
    add("--resume", type=Path, metavar="RUN", help="resume an interrupted run")
    add_overrides(parser)
    add("--run", dest="run_directory", type=Path, help="the run directory (default: a new one)")
    add("--runs", type=Path, default=Path("runs"), help="folder for new run directories (runs)")
    add("--check", action="store_true", help="check the configuration and train nothing")
    add("--workers", type=int, default=1, help="with --check: the number of workers (1)")


def start_run(
    arguments: argparse.Namespace,
    *,
    kind: type,
    readme: str,
    check: Callable[[Any, int], None],
    run: Callable[..., str],
) -> int:
    """Start or resume a run; with `--check` only look at its settings.

    Args:
        kind: class of the configuration.
        check: `check(config, num_workers)` raises a UserError if the settings are unsound.
        run: `run(config, workers, directory, progress)` does the work; rank 0 prints its result.
    """
    if bool(arguments.configs) == (arguments.resume is not None):
        raise UserError("name either a configuration or, with --resume, a run to resume")
    if arguments.resume and (arguments.overrides or arguments.run_directory):
        raise UserError("--resume keeps the settings of the run: leave out --set and --run")
    if arguments.check:
        check(_read_config(arguments, kind), arguments.workers)
        print("the settings are sound; nothing was trained")
        return 0

    from edp_mx.runtime.distributed import start

    workers = start()
    # Rank 0 prepares the directory; no worker writes before it exists.
    config, directory = workers.on_first(lambda: _open(arguments, kind, readme))
    outcome = run(config, workers, directory, enter_run(directory, workers))
    if workers.is_first:
        print(outcome)
    return 0


def create_run(arguments: argparse.Namespace, config: Any, *, readme: str, suffix: str = "") -> Any:
    """Create the run directory that `--run` names, or a new one below `--runs`; on rank 0.

    The name of a new one is that of the configuration and `suffix`.
    """
    from edp_mx.config import dump_config

    directory = RunDirectory.choose(f"{config.name}{suffix}", arguments.runs)
    if arguments.run_directory:
        directory = RunDirectory(arguments.run_directory)
    directory.create(config.name, dump_config(config), readme=readme)
    return directory


def enter_run(directory: Any, workers: Any) -> Any:
    """Begin this worker's log in a run directory; return its progress bars."""
    directory.path.mkdir(parents=True, exist_ok=True)  # on the disk of another machine
    start_logging(is_first=workers.is_first, file=directory.log(workers.rank))
    return progress_bar(is_first=workers.is_first)


def _open(arguments: argparse.Namespace, kind: type, readme: str) -> Tuple[Any, RunDirectory]:
    """Return the configuration and the run directory, a new one unless a run is resumed."""
    config = _read_config(arguments, kind)
    if arguments.resume:
        return config, RunDirectory(arguments.resume)
    return config, create_run(arguments, config, readme=readme)


def _read_config(arguments: argparse.Namespace, kind: type) -> Any:
    """Return the configuration that is named, or that of the run to resume."""
    from edp_mx.config import load_config

    if arguments.resume is None:
        return load_config(arguments.configs, arguments.overrides, kind=kind)
    return load_config(RunDirectory.unfinished(arguments.resume).config, kind=kind)
