"""Write one HTML page, and the same as Markdown, of what records say.

The page has both tables beside the paper's, SER against epsilon, every run, what no epsilon covers,
the machines and the commands. It needs no network.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from edp_mx.errors import UserError
from edp_mx.runs.record import GRIDS, RECORDS, TIMES

PERFORMANCE = RECORDS.with_name("performance.json")
EXAMPLES = """\
examples:
  edp-mx report --out results/report.html
  edp-mx report results/records runs/table1 --out report.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("records", nargs="*", type=Path, metavar="RECORDS",
        help=f"records, runs, and folders of them ({RECORDS})")  # fmt: skip
    add("--times", type=Path, default=TIMES, metavar="FILE.json",
        help=f"the record of Table 2, if it is there ({TIMES})")  # fmt: skip
    add("--grids", type=Path, default=GRIDS, metavar="FOLDER",
        help=f"records of the paper's grids, if they are there ({GRIDS})")  # fmt: skip
    add("--out", type=Path, required=True, metavar="FILE.html",
        help="the page; beside it lies FILE.md, without pictures")  # fmt: skip
    add("--performance", type=Path, default=PERFORMANCE, metavar="FILE.json",
        help=f"measured by benchmarks/performance.py, if it is there ({PERFORMANCE})")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Write both pages."""
    from edp_mx.reports.parts import as_html, as_markdown
    from edp_mx.reports.result_page import TITLE, parts_of, summary_of
    from edp_mx.runs.attack_records import collect_attacks
    from edp_mx.runs.records import collect, records_below
    from edp_mx.runs.shapes import check_file
    from edp_mx.runs.tables.times import read_times
    from edp_mx.runtime.files import write_text
    from edp_mx.runtime.json_text import read_json

    out = arguments.out
    if out.suffix != ".html":
        raise UserError(f"--out is {out}; name a file that ends in .html")
    places = arguments.records or [RECORDS]
    records = [found.record for found in collect(places)]
    if not records:
        raise UserError(f"{places[0]} has no record of a run: train something, or name others")
    measured = arguments.performance
    performance = (
        check_file("performance", read_json(measured), measured) if measured.exists() else {}
    )
    words = ["edp-mx", "report", *map(str, arguments.records), "--out", str(out)]
    for option, given, usual in (
        ("--times", arguments.times, TIMES),
        ("--performance", arguments.performance, PERFORMANCE),
        ("--grids", arguments.grids, GRIDS),
    ):
        words += [option, str(given)] if given != usual else []
    attacks, times = collect_attacks(places), read_times(arguments.times)
    grids = records_below(arguments.grids)
    parts = parts_of(records, attacks, times, performance, grids, shlex.join(words))
    content = (TITLE, summary_of(records), parts)
    write_text(out, as_html(*content))
    write_text(out.with_suffix(".md"), as_markdown(*content))
    print(f"{out}\n{out.with_suffix('.md')}")
    return 0
