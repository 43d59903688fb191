"""Train a model and write a run directory that explains itself."""

from __future__ import annotations

import argparse
from typing import Any

from edp_mx.cli.console import values_of
from edp_mx.cli.start import add_start_options, start_run

EXAMPLES = """\
examples:
  edp-mx train configs/quickstart.yaml
  NP=2 launch/train.sh configs/atis_clc.yaml configs/mechanism/edp_linear.yaml
  NP=2 launch/train.sh configs/atis_clc.yaml --set training.epochs=20
  edp-mx train configs/atis_clc.yaml --check
  NP=2 launch/train.sh --resume runs/atis_clc-20260101-120000

With several workers use launch/train.sh, which starts them.
"""


add_options = add_start_options


def run(arguments: argparse.Namespace) -> int:
    """Train; rank 0 prints the scores and the guarantee."""
    from edp_mx.api import train_and_draw
    from edp_mx.runs.lifecycle import RunRequest

    request = RunRequest(**values_of(RunRequest, arguments))
    return start_run(
        arguments, request, train_and_draw, check=_check, describe=_describe, as_json=_as_json
    )


def _describe(directory: Any) -> str:
    from edp_mx.reports.summary import compare
    from edp_mx.reports.table import fit

    where = (
        f"The run directory is {directory.path}; report.html shows it, README.md describes its "
        "files."
    )
    return fit(f"{compare([directory])}\n\n{where}")


def _as_json(directory: Any) -> Any:
    from edp_mx.reports.summary import compare_as_json

    return {"path": str(directory.path), **compare_as_json([directory])[0]}


def _check(config: Any, num_workers: int, resumed: Any, is_quick: bool) -> str:
    """Say what the run would train on and what it would spend."""
    from edp_mx.reports.table import fit
    from edp_mx.runs.check import check, check_files
    from edp_mx.runtime.progress import progress_bar

    if is_quick:
        check_files(config, num_workers, resumed)
        return f"{config.name}: its files are there"
    lines = check(config, num_workers, resumed, progress_bar(is_first=True))
    return fit("\n".join(lines))
