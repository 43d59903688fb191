"""Train a model and write a run directory that explains itself."""

from __future__ import annotations

import argparse
from typing import Any, Dict

from edp_mx.cli.start import add_start_options, carry_out, start_run

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
    return start_run(arguments, check=_check, run=_train, as_json=_as_json, **_kind())


def train(arguments: argparse.Namespace) -> Any:
    """Train and return the run directory; nothing is printed."""
    return carry_out(arguments, run=_train, **_kind())[1]


def _kind() -> Dict[str, Any]:
    from edp_mx.config import ExperimentConfig
    from edp_mx.runs.run_directory import README

    return {"kind": ExperimentConfig, "readme": README}


def _train(config: Any, workers: Any, directory: Any, progress: Any, parting: Any) -> str:
    from edp_mx.reports.curves import plot_curves
    from edp_mx.reports.run_page import write_run_page
    from edp_mx.reports.summary import compare
    from edp_mx.reports.table import fit
    from edp_mx.runs.train import train

    train(config, workers, directory, progress, parting)
    if not workers.is_first:
        return ""
    plot_curves(directory)
    write_run_page(directory)
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
    from edp_mx.cli.console import progress_bar
    from edp_mx.reports.table import fit
    from edp_mx.runs.check import check, check_files

    if is_quick:
        check_files(config, num_workers, resumed)
        return f"{config.name}: its files are there"
    lines = check(config, num_workers, resumed, progress_bar(is_first=True))
    return fit("\n".join(lines))
