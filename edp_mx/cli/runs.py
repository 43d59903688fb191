"""List finished runs and kept records, keep the records of runs, or plot them.

A record is a few KB: settings, scores, both epsilons, and no text and no paths. It can be
committed where the run directory cannot. No epsilon covers its scores and its time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Sequence

from edp_mx.cli.console import add_wide, tell
from edp_mx.errors import UserError
from edp_mx.runs.attack_records import keep_whole
from edp_mx.runs.record import RECORDS
from edp_mx.runs.records import SORTS, Found, collect, select
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.settings import refuse_unread

EXAMPLES = """\
examples:
  all below runs/, or in results/ where there are none; the kept records:
    edp-mx runs
    edp-mx runs results
  some of them, the best first:
    edp-mx runs runs/ --where corpus=snips mechanism=dp_sgd training.epochs=8 --sort score
    edp-mx runs results --where 'name=atis_*' --json
  add their records to results/runs.jsonl, and those of attacks on them to results/attacks.jsonl:
    edp-mx runs keep runs/atis_clc-20260101-120000
    edp-mx runs keep sweeps/atis/trial-* --into elsewhere
  draw SER against epsilon and the number of utterances, and batch size x learning rate:
    edp-mx runs plot results sweeps/atis --out pictures
"""
_KEEP, _PLOT = "keep", "plot"
_PLACES = (Path("runs"), RECORDS)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", type=Path, metavar="RUN|FOLDER|RECORD",
        help="runs and records to list or plot (runs/, or results/); after keep, runs")  # fmt: skip
    add(
        "--into",
        type=Path,
        metavar="FOLDER",
        help=f"with keep: the folder of runs.jsonl ({RECORDS})",
    )
    add("--out", type=Path, metavar="FOLDER", help="with plot: the folder for the pictures")
    add("--where", nargs="+", action="extend", default=[], metavar="KEY=VALUE",
        help="only runs with these: a record's key, or a setting's, e.g. training.epochs=8; the "
        "value may be a pattern")  # fmt: skip
    add("--sort", choices=tuple(SORTS), help="default name")
    add("--json", action="store_true", help="print whole records as JSON")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    action = str(arguments.paths[0]) if arguments.paths else ""
    for option, value, owner in (
        ("--into", arguments.into, _KEEP),
        ("--out", arguments.out, _PLOT),
    ):
        if value and action != owner:
            raise UserError(f"{option} belongs to `edp-mx runs {owner}`: leave it out")
    if action == _KEEP:
        refuse_unread(
            vars(arguments), ("where", "sort", "json"), "keep takes the runs that it names"
        )
        return _keep(arguments)
    if action == _PLOT:
        refuse_unread(vars(arguments), ["json"], "plot writes pictures")
    paths = arguments.paths[1:] if action == _PLOT else arguments.paths
    places = [paths] if paths else [[place] for place in _PLACES if place.exists()]
    every = next(filter(None, map(collect, places)), [])  # of the first place that has any
    found = select(every, arguments.where, arguments.sort or "name")
    if action == _PLOT:
        return _plot(found, arguments)
    from edp_mx.reports.run_list import list_runs

    return tell(
        arguments,
        lambda: [each.as_json() for each in found],
        lambda: list_runs(found) if found else "there is no such finished run",
    )


def _plot(found: Sequence[Found], arguments: argparse.Namespace) -> int:
    if not arguments.out:
        raise UserError("name a folder for the pictures: edp-mx runs plot RECORD… --out FOLDER")
    from edp_mx.reports.record_plots import write_plots

    print("\n".join(write_plots([each.record for each in found], arguments.out)))
    return 0


def _keep(arguments: argparse.Namespace) -> int:
    runs = [RunDirectory.existing(path) for path in arguments.paths[1:]]
    if not runs:
        raise UserError("name the runs whose records are to be kept: edp-mx runs keep RUN…")
    into = arguments.into or RECORDS
    for each in runs:
        print(*keep_whole(each, into), sep="\n")
    return 0
