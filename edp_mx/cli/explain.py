"""Explain, from the ledger of a run alone, who is protected, against whom, and how far.

Explain epsilon in plain numbers, its limits, and how to make it smaller.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edp_mx.cli.console import tell
from edp_mx.runs.run_directory import RunDirectory

EXAMPLES = """\
examples:
  edp-mx explain runs/mine-20260101-120000
  edp-mx explain runs/mine-20260101-120000 --delta 1e-6
  edp-mx explain runs/mine-20260101-120000 > what_it_promises.txt
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directory", type=Path, metavar="RUN", help="a run directory or a ledger")
    add("--delta", type=float, metavar="D", help="another delta than the run's")
    add("--json", action="store_true", help="print privacy.json and the sections as JSON")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.explanation import NO_MECHANISM_PAGE, explain, explain_by_section
    from edp_mx.reports.ledger_report import account_of, at_other_deltas_as_json, is_without_privacy

    path = arguments.run_directory
    if is_without_privacy(path):
        privacy = RunDirectory(path).read("privacy")
        said = {"privacy": privacy, "sections": {"IN SHORT": NO_MECHANISM_PAGE}}
        return tell(arguments, lambda: said, lambda: NO_MECHANISM_PAGE)
    account = account_of(path, delta=arguments.delta)

    def as_json() -> Any:
        others = at_other_deltas_as_json(account.spent)
        sections = {title: "\n".join(lines) for title, lines in explain_by_section(account)}
        privacy = {**account.spent.to_dict(), "at_other_deltas": others}
        return {"privacy": privacy, "sections": sections}

    return tell(arguments, as_json, lambda: explain(account, name=path.name))
