"""`edp-mx compare`: runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edp_mx.cli.console import add_command

EXAMPLES = """\
examples:
  edp-mx compare runs/atis_clc-* runs/atis_clc_edp_*
"""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = add_command(
        subparsers,
        "compare",
        run,
        "set finished runs side by side",
        EXAMPLES,
        description="A table of SER, intent accuracy, slot F1 and both epsilons. The first run is "
        "the one that changes are measured against.",
    )
    parser.add_argument("run_directories", nargs="+", type=Path, metavar="RUN")


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    from edp_mx.reports.summary import compare
    from edp_mx.runs.run_directory import RunDirectory

    print(compare([RunDirectory.existing(path) for path in arguments.run_directories]))
    return 0
