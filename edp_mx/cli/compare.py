"""Compare runs: a table of SER, intent accuracy, slot F1 and both epsilons.

The first run is the one that changes are measured against.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edp_mx.runs.run_directory import RunDirectory

EXAMPLES = """\
examples:
  edp-mx compare runs/atis_clc-* runs/atis_clc_edp_*
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directories", nargs="+", type=Path, metavar="RUN")


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    from edp_mx.reports.summary import compare

    print(compare([RunDirectory.existing(path) for path in arguments.run_directories]))
    return 0
