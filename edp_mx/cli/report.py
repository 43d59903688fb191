"""Write one page, as HTML and as Markdown, from the records of runs.

The page has SER against epsilon, the attacks, every run, what no epsilon covers and the machines.
It needs no network.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from edp_mx.runs.record import RECORDS

EXAMPLES = """\
examples:
  edp-mx report runs --out report.html
  edp-mx report results runs sweeps/atis --out report.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("records", nargs="*", type=Path, metavar="RECORDS",
        help=f"records, runs, and folders of them ({RECORDS})")  # fmt: skip
    add("--out", type=Path, required=True, metavar="FILE.html",
        help="the page; beside it lies FILE.md, without pictures")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.records_page import parts_of, read, write_pages

    records, attacks = read(arguments.records or [RECORDS], arguments.out)
    command = shlex.join(
        ["edp-mx", "report", *map(str, arguments.records), "--out", str(arguments.out)]
    )
    parts = parts_of(records, attacks, command)
    print(*write_pages(arguments.out, records, attacks, parts), sep="\n")
    return 0
