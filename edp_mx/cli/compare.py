"""Compare runs: a table of SER, intent accuracy, slot F1 and both epsilons.

The first run is the one that changes are measured against.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edp_mx.cli.console import add_wide, tell
from edp_mx.runs.run_directory import RunDirectory

EXAMPLES = """\
examples:
  edp-mx compare runs/atis_clc-* runs/atis_clc_edp_*
  edp-mx compare runs/atis_clc-* --json          (scores, baseline and both epsilons of each)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directories", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.summary import compare, run_as_json

    runs = [RunDirectory.existing(path) for path in arguments.run_directories]
    for each in runs:
        each.scores()  # refuses a run that has not ended, by its name
    return tell(arguments, lambda: [*map(run_as_json, runs)], lambda: compare(runs))
