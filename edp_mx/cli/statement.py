"""Write the statement of privacy of a run into its directory: a page to print and to sign.

It says who is protected and how far, from the ledger of the run; what reached the model without
noise, and who called that public; what no epsilon covers; what attacks found; and how often the
training part repeats an utterance, for which the corpus is read again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  edp-mx statement runs/mine-20260101-120000
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="the directory of a run")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.statement import write_statement

    print(*write_statement(arguments.run_directory), sep="\n")
    return 0
