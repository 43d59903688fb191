"""Say in words, from the ledger of a run alone, who is protected, against whom, and how far.

Say what epsilon means in plain numbers, what it does not cover, and what would make it better.
"""

from __future__ import annotations

import argparse
from pathlib import Path

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


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from edp_mx.accounting.ledger_account import account_for
    from edp_mx.reports.explanation import NO_MECHANISM_PAGE, explain
    from edp_mx.reports.ledger_report import is_without_privacy, ledger_path

    if is_without_privacy(arguments.run_directory):
        print(NO_MECHANISM_PAGE)
        return 0
    path = ledger_path(arguments.run_directory)
    print(explain(account_for(path, delta=arguments.delta), name=arguments.run_directory.name))
    return 0
