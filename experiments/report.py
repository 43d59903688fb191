"""Write one HTML page, and the same as Markdown, of all results.

The page has both tables beside the paper's, SER against epsilon, every run, what no epsilon covers,
the machines and the commands. It needs no network.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from edp_mx.cli import report
from edp_mx.runs.record import RECORDS
from experiments.command import main
from experiments.records import GRIDS, PERFORMANCE, TIMES

EXAMPLES = """\
examples:
  python -m experiments.report --out results/report.html
  python -m experiments.report results runs/table1 --out report.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    report.add_options(parser)
    add = parser.add_argument
    add("--times", type=Path, default=TIMES, metavar="FILE.json",
        help=f"the record of Table 2, if it is there ({TIMES})")  # fmt: skip
    add("--grids", type=Path, default=GRIDS, metavar="FILE.jsonl",
        help=f"records of the paper's grids, if they are there ({GRIDS})")  # fmt: skip
    add("--performance", type=Path, default=PERFORMANCE, metavar="FILE.json",
        help=f"measured by benchmarks/performance.py, if it is there ({PERFORMANCE})")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.records_page import read, write_pages
    from edp_mx.runs.records import records_below
    from experiments.pages.result_page import parts_of
    from experiments.pages.step_costs import read_performance
    from experiments.tables.times import read_times

    records, attacks = read(arguments.records or [RECORDS], arguments.out)
    parts = parts_of(
        records,
        attacks,
        read_times(arguments.times),
        read_performance(arguments.performance),
        records_below(arguments.grids),
        _command(arguments),
    )
    print(*write_pages(arguments.out, records, attacks, parts), sep="\n")
    return 0


def _command(arguments: argparse.Namespace) -> str:
    words = ["python", "-m", "experiments.report", *map(str, arguments.records)]
    for option, given, usual in (
        ("--out", arguments.out, None),
        ("--times", arguments.times, TIMES),
        ("--performance", arguments.performance, PERFORMANCE),
        ("--grids", arguments.grids, GRIDS),
    ):
        words += [option, str(given)] if given != usual else []
    return shlex.join(words)


if __name__ == "__main__":
    sys.exit(main("report", sys.argv[1:]))
