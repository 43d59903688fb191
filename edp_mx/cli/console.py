"""What the subcommands share: how a run begins, logging and progress bars."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from tqdm import tqdm

from edp_mx.errors import UserError
from edp_mx.runtime.files import keep_private


def start_logging(*, is_first: bool, file: Optional[Path] = None) -> None:
    """Send rank 0's INFO to the console, everyone's DEBUG to `file`, which others cannot read.

    With a file this process fills a run directory: all that it writes is then readable by its
    owner alone.
    """
    if file is not None:
        keep_private()
    root = logging.getLogger("edp_mx")
    root.setLevel(logging.DEBUG)
    root.handlers.clear()
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(logging.INFO if is_first else logging.ERROR)
    console.setFormatter(logging.Formatter("%(message)s"))
    root.addHandler(console)
    if file is not None:
        log = logging.FileHandler(file, encoding="utf-8")
        log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(log)


# maxinterval keeps tqdm's monitor thread, which would repeat lines, from stirring.
PIPE_PACE: Dict[str, Any] = {
    "mininterval": 10.0,
    "maxinterval": 3600.0,
    "delay": 10.0,
    "ascii": " =",
    "ncols": 72,
}


def progress_bar(*, is_first: bool) -> Callable[[Iterable[Any], str, Optional[int]], Iterable[Any]]:
    """`progress(iterable, description, total)`: a bar on rank 0, the iterable itself elsewhere.

    A worker's stderr is a pipe of horovodrun's, where a bar cannot redraw itself: there each state
    is a line of its own, at most one in ten seconds.
    """
    is_terminal = sys.stderr.isatty()
    pace = {} if is_terminal else PIPE_PACE

    def progress(iterable: Iterable[Any], description: str, total: Optional[int]) -> Iterable[Any]:
        return tqdm(
            iterable,
            desc=description,
            total=total,
            disable=not is_first,
            leave=False,
            unit_scale=total is None or total >= 50_000,
            file=sys.stderr if is_terminal else _Lines(),
            **pace,
        )

    return progress


class _Lines:
    """A file that turns the states of a progress bar into lines on stderr."""

    def write(self, text: str) -> None:
        text = text.strip("\r\n ")
        if text:
            sys.stderr.write(f"{text}\n")

    def flush(self) -> None:
        sys.stderr.flush()


def add_action(actions: Any, name: str, run: Callable, summary: str, examples: str) -> Any:
    """The parser of one action of a command, e.g. `edp-mx data make`."""
    parser = actions.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_start_options(parser: argparse.ArgumentParser) -> None:
    """What begins a run, or goes on with one: `train` and `pretrain` share it."""
    parser.add_argument("config", nargs="?", type=Path, help="a YAML file, see the examples")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with an interrupted run")
    add_overrides(parser)
    parser.add_argument(
        "--run",
        dest="run_directory",
        type=Path,
        help="the run directory (default: new)",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run directories go")
    parser.add_argument(
        "--check",
        action="store_true",
        help="read the configuration, say whether it is sound, train nothing",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        help="with --check: the number of workers that the settings must fit",
    )


def refuse_mixed_start(arguments: argparse.Namespace) -> None:
    """A run begins from a configuration or goes on with --resume: one of the two.

    Raises:
        UserError: neither or both, or settings for a run that has its own.
    """
    if (arguments.config is None) == (arguments.resume is None):
        raise UserError("name either a configuration or, with --resume, a run to go on with")
    if arguments.resume and (arguments.overrides or arguments.run_directory):
        raise UserError("--resume goes on with the run's own settings: leave out --set and --run")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """`--set key.path=value`, as often as one likes."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="extend",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="override settings, e.g. --set training.epochs=3 privacy.noise_multiplier=0.5",
    )


def settle(
    arguments: argparse.Namespace,
    workers: Any,
    read: Callable[[], Any],
    create: Callable[[Any, Any], None],
) -> Tuple[Any, Any]:
    """The configuration and run directory of a command that starts or resumes a run.

    Rank 0 settles both; no worker writes before the directory is there.

    Args:
        read: the configuration.
        create: (directory, configuration) → makes a new run directory.

    Raises:
        UserError: on every worker, what struck rank 0.
    """
    from edp_mx.runs.first_worker import on_first_worker
    from edp_mx.runs.run_directory import RunDirectory

    def settled() -> Tuple[Any, Any]:
        config = read()
        if arguments.resume:
            return config, RunDirectory(arguments.resume)
        path = arguments.run_directory or RunDirectory.choose(config.name, arguments.runs).path
        directory = RunDirectory(path)
        create(directory, config)
        return config, directory

    config, directory = on_first_worker(workers, settled)
    directory.path.mkdir(parents=True, exist_ok=True)
    return config, directory
