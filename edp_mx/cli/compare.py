"""`edp-mx compare`: runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = """examples:
  edp-mx compare runs/atis_clc-* runs/atis_clc_edp_*
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="set finished runs side by side",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A table of SER, intent accuracy, slot F1 and both epsilons. The first run is "
        "the one that changes are measured against.",
    )
    parser.add_argument("run_directories", nargs="+", type=Path, metavar="RUN")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    from edp_mx.reports.summary import compare
    from edp_mx.runs.run_directory import RunDirectory

    print(compare([RunDirectory.existing(path) for path in arguments.run_directories]))
    return 0
