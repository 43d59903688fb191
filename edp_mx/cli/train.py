"""Train a model and write a run directory that explains itself."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Optional

from edp_mx.cli.console import (
    add_configs,
    add_overrides,
    require_at_least,
    tell,
    values_of,
    whole,
    workers_to_check,
)
from edp_mx.errors import UserError

EXAMPLES = """\
examples:
  edp-mx train configs/quickstart.yaml
  NP=2 launch/train.sh configs/atis_clc.yaml configs/mechanism/edp_linear.yaml
  NP=2 launch/train.sh configs/atis_clc.yaml --set training.epochs=20
  edp-mx train configs/atis_clc.yaml --check
  NP=2 launch/train.sh --resume runs/atis_clc-20260101-120000

With several workers use launch/train.sh, which starts them.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_configs(parser, nargs="*")
    add("--resume", type=Path, metavar="RUN", help="resume an interrupted run")
    add_overrides(parser)
    add("--run", dest="run_directory", type=Path, help="the run directory (default: a new one)")
    add("--runs", type=Path, default=Path("runs"), help="folder for new run directories (runs)")
    often = "with launch/*.sh: restarts after a worker died or a host was lost (0)"
    add("--max-restarts", type=whole, default=0, metavar="K", help=often)
    checked = "check the configuration and its files, and train nothing"
    add("--check", action="store_true", help=checked)
    at_once = "a quick check of settings and files alone, without the corpus and ε"
    add("--check-files", action="store_true", help=at_once)
    count = "with --check: the number of workers (1, or those of the run to resume)"
    add("--workers", type=whole, help=count)
    add("--json", action="store_true", help="print the result of a training as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Train, resume, or check the settings; rank 0 prints the scores and the guarantee."""
    if bool(arguments.configs) == (arguments.resume is not None):
        raise UserError("name either a configuration or, with --resume, a run to resume")
    if arguments.resume and (arguments.overrides or arguments.run_directory):
        raise UserError("--resume keeps the settings of the run: leave out --set and --run")
    require_at_least(arguments.max_restarts, 0, "--max-restarts")
    if arguments.json and (arguments.check or arguments.check_files):
        raise UserError("--json prints a training's result: leave it out with --check")
    count = workers_to_check(arguments)
    from edp_mx.api import train_and_draw
    from edp_mx.runs.lifecycle import RunRequest, carry_out

    request = RunRequest(**values_of(RunRequest, arguments))
    if arguments.check or arguments.check_files:
        return _check(arguments, request, count)
    if arguments.max_restarts and "HOROVOD_RANK" not in os.environ:
        raise UserError(
            "--max-restarts needs a process that outlives the run: use NP=1 launch/train.sh"
        )
    workers, directory = carry_out(request, train_and_draw)
    if workers.is_first:
        tell(arguments, lambda: _as_json(directory), lambda: _describe(directory))
    return 0


def _describe(directory: Any) -> str:
    from edp_mx.reports.summary import compare
    from edp_mx.reports.table import fit

    where = (
        f"The run directory is {directory.path}; report.html shows it, README.md describes its "
        "files."
    )
    return fit(f"{compare([directory])}\n\n{where}")


def _as_json(directory: Any) -> Any:
    from edp_mx.reports.summary import run_as_json

    return {"path": str(directory.path), **run_as_json(directory)}


def _check(arguments: argparse.Namespace, request: Any, count: Optional[int]) -> int:
    """Print the data and the ε of the run that would be trained; train nothing."""
    from edp_mx.reports.table import fit
    from edp_mx.runs.check import check, check_files
    from edp_mx.runs.lifecycle import refuse_absent
    from edp_mx.runs.run_directory import RunDirectory
    from edp_mx.runtime.progress import progress_bar

    config = request.config()
    refuse_absent(config)
    resumed = RunDirectory(arguments.resume) if arguments.resume else None
    if count is None:
        count = 1 if resumed is None else resumed.num_workers()
    if arguments.check_files:
        check_files(config, count, resumed)
        print(f"{config.name}: its files are there")
    else:
        print(fit("\n".join(check(config, count, resumed, progress_bar(is_first=True)))))
    print("the settings are sound; nothing was trained")
    return 0
