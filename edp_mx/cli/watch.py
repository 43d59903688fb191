"""Show how far a running job is: state, time left, and its last epochs with both epsilons.

It reads the files of the run and nothing else, and ends when the run does: with 0 if it has trained
to its end, with 1 if it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from edp_mx.cli.console import print_json

EXAMPLES = """\
examples:
  edp-mx watch runs/mine
  edp-mx watch runs/mine --once
  edp-mx watch runs/mine --json | jq '.epochs[-1].epsilon_holds_if'
"""
CLEAR = "\x1b[H\x1b[2J"
INTERVAL = 2.0  # seconds between two looks


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directory", type=Path, metavar="RUN", help="a run directory")
    add("--once", action="store_true", help="show it once and return")
    add("--json", action="store_true", help="print its state and all epochs once, as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Show the run until it ends; in a pipe only new lines."""
    from edp_mx.reports.table import fit
    from edp_mx.reports.watch_screen import read_rows, screen, state_of, table_of
    from edp_mx.runs.run_directory import RunDirectory

    watched, seen = RunDirectory.existing(arguments.run_directory), 0
    is_terminal = sys.stdout.isatty()
    while True:
        is_over = not watched.is_in_use()  # asked before the files are read
        if arguments.json:
            print_json({"state": state_of(watched), "epochs": read_rows(watched)})
        elif is_over or arguments.once or is_terminal:
            print(f"{CLEAR * is_terminal}{fit(screen(watched))}", flush=True)
        elif len(rows := read_rows(watched)) > seen:
            print("\n".join(table_of(rows).splitlines()[2 + seen if seen else 0 :]), flush=True)
            seen = len(rows)
        if is_over or arguments.once or arguments.json:
            return 1 if is_over and not watched.has("results") else 0
        time.sleep(INTERVAL)
